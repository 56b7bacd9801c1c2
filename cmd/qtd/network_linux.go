package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/confine"
	"github.com/quicterm/quicterm/quicterm/machine/logqueue"
	"github.com/quicterm/quicterm/quicterm/monitor"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/server"
)

// networkOf returns the half of a daemon that talks to clients: a process without rights, if this one
// is root's.
func networkOf(
	ctx context.Context, m *monitor.Monitor, settings *configs.Server, log *logqueue.Queue,
) (privsep.Network, error) {
	if os.Geteuid() != 0 {
		s, err := server.NewServer(m.Calls(), m.Setup(), log.Logger())
		if err == nil {
			s.SaveProcessors()
		}
		return s, err
	}
	// What is left to this process is short, and waits for others: a second processor costs more time
	// to wake up than it saves.
	runtime.GOMAXPROCS(1)
	return m.NewProcess(ctx, log, "--log-level", settings.LogLevel)
}

// keepSecrets keeps the memory of root's daemon from others. It returns what starts a process with the limits that the
// daemon had.
func keepSecrets() (within func(func() error) error, err error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	return confine.NoDumps()
}

// networkCommand returns the hidden command that the daemon of root runs for its clients.
func networkCommand() *cobra.Command {
	var level string
	var cell confine.Cell
	c := &cobra.Command{
		Use:    privsep.Command,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			spawn.CloseInherited(privsep.ChannelFD + 1)
			limitMemory()
			os.WriteFile("/proc/self/comm", []byte("qtd-network"), 0) // for ps; its program is a link in /proc
			missing, err := cell.Enter()
			if err != nil {
				return fmt.Errorf("confine the network process: %w", err)
			}
			variable := new(slog.LevelVar)
			variable.Set(levelOf(level))
			queue := newLog(os.Stderr, variable)
			defer queue.Close()
			for _, err := range missing {
				queue.Logger().Warn("the network process is confined less than it should be", "error", err)
			}
			return serveNetwork(queue.Logger(), variable)
		},
	}
	c.Flags().StringVar(&level, "log-level", "info", "")
	c.Flags().Uint32Var(&cell.UID, "uid", 0, "")
	c.Flags().Uint32Var(&cell.GID, "gid", 0, "")
	c.Flags().StringVar(&cell.Root, "root", "", "")
	c.Flags().BoolVar(&cell.Mounts, "mounts", false, "")
	return c
}

// serveNetwork talks to clients for the monitor that has started this process.
func serveNetwork(log *slog.Logger, level *slog.LevelVar) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a failed write to the log ends nothing
	remote, err := privsep.Inherited()
	if err != nil {
		return err
	}
	return remote.Run(ctx, func(setup *privsep.Setup) (privsep.Network, error) {
		s, err := server.NewServer(&remote.Calls, setup, log)
		if err != nil {
			return nil, err
		}
		s.SaveProcessors()
		return &leveled{s, level}, nil
	})
}

// A leveled is a network half with a log whose level the settings change.
type leveled struct {
	*server.Server
	level *slog.LevelVar
}

// Update implements [monitor.Network].
func (l *leveled) Update(state privsep.State) {
	l.level.Set(levelOf(state.LogLevel))
	l.Server.Update(state)
}
