//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/doctor"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/monitor"
	"github.com/quicterm/quicterm/quicterm/monitor/access"
)

func serveCommand() *cobra.Command {
	var config string
	var listen []string
	var granted, test bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve sessions over QUIC and TCP",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if test {
				return testServe(c.Context(), config, listen)
			}
			if !granted {
				return serve(config, listen, false, func() {})
			}
			report := reporter()
			defer func() { report(err) }()
			// The daemon outlives its parent: it gives up terminal, locks and pipes.
			signal.Ignore(syscall.SIGHUP)
			spawn.CloseInherited(reportFD + 1)
			return serve(config, listen, true, func() { report(nil) })
		},
	}
	addConfigFlag(c, &config)
	c.Flags().StringArrayVar(&listen, "listen", nil,
		"`address:port` to serve over UDP and TCP, instead of the setting listen; may be repeated")
	c.Flags().BoolVar(&test, "test", false,
		"serve nothing, and fail if a daemon would not start or would refuse all logins: "+
			"a mistake in the settings, or in sshd's")
	c.Flags().BoolVar(&granted, "granted", false, "")
	c.Flags().MarkHidden("granted")
	return c
}

// loadSettings reads the settings of a daemon and checks them. listen takes the place of the setting, if there is any.
func loadSettings(config string, listen []string, granted bool) (*configs.Server, error) {
	settings, err := configs.LoadServer(config, func(s *configs.Server) error { return access.CheckSettings(s, granted) })
	if err == nil && len(listen) > 0 {
		settings.Listen = listen
	}
	return settings, err
}

// testServe returns why a daemon would not start, or would refuse all logins. It tells of what else is wrong.
func testServe(ctx context.Context, config string, listen []string) error {
	settings, err := loadSettings(config, listen, false)
	if err != nil {
		return err
	}
	var failures []error
	for _, f := range monitor.Test(ctx, monitor.Config{Settings: settings, Software: software()}) {
		found := fmt.Errorf("%s: %s — %s", f.ID, f.Found, f.Todo)
		switch f.State {
		case doctor.Fail:
			failures = append(failures, found)
		case doctor.Warn:
			fmt.Fprintln(os.Stderr, "qtd:", found)
		}
	}
	return errors.Join(failures...)
}

// leastMemory is how many bytes the daemon may always take before it collects garbage
// without end: a thousand connections take a quarter of it.
const leastMemory = 256 << 20

// serve runs the daemon until SIGINT or SIGTERM. It calls ready when the daemon listens.
func serve(config string, listen []string, granted bool, ready func()) error {
	hangups := make(chan os.Signal, 1)
	if !granted { // a granted one ignores SIGHUP; here, one that comes early must not end the daemon
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	cfg := monitor.Config{Granted: granted}
	var passedErr error
	if !granted {
		cfg.Manager, cfg.Passed, passedErr = systemd.Start()
	}
	settings, err := loadSettings(config, listen, granted)
	if err != nil {
		return err
	}
	limitMemory()
	// A failed write to the log must not end the daemon.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var out io.Writer = os.Stderr
	if granted { // standard error is the same file, but it would grow without end
		if out, err = openLog(settings.RuntimeDir, grantedLog); err != nil {
			return err
		}
	}
	level := new(slog.LevelVar)
	level.Set(levelOf(settings.LogLevel))
	log := newLog(out, level)
	defer log.Close()
	if os.Geteuid() == 0 && !granted {
		if err := memory.Protect(); err != nil {
			log.Logger().Info("the kernel may end this daemon when memory is short", "error", err)
		}
	}
	if cfg.Local.Within, err = keepSecrets(); err != nil {
		log.Logger().Warn("other processes may read the daemon's memory", "error", err)
	}
	cfg.Local.Outside = systemd.Outside()
	cfg.Local.Move = func(ctx context.Context, pid int, scope systemd.Scope) error {
		return systemd.FindScopes().Move(ctx, pid, scope)
	}
	cfg.Settings, cfg.Log, cfg.Software, cfg.Local.PAM = settings, log.Logger(), software(), true
	if passedErr != nil {
		cfg.Log.Warn("socket of the service manager cannot be used", "error", passedErr)
	}
	cfg.Local.Args = []string{"--log-level", settings.LogLevel}
	if granted { // the same is true of what holders inherit
		cfg.Local.Args = append(cfg.Local.Args, spawn.OwnLogFlag, "--"+logBaseFlag, settings.RuntimeDir)
	}
	daemon, err := monitor.New(cfg)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	network, err := networkOf(ctx, daemon, settings, log)
	if err != nil {
		return err
	}
	leaveLogin(cfg.Log)
	if granted { // it ignores SIGHUP
		return daemon.ListenAndServe(ctx, network, ready)
	}
	done, file := make(chan struct{}), stderrFile()
	go func() {
		defer close(done)
		for range hangups {
			if err := reopenStderr(file); err != nil {
				cfg.Log.Error("the log stays in the file that was put aside", "error", err)
			}
			reload(daemon, cfg.Log, config, listen, level)
		}
	}()
	err = daemon.ListenAndServe(ctx, network, ready)
	signal.Stop(hangups)
	close(hangups)
	<-done
	return err
}

// limitMemory makes this process collect garbage for the memory that it may take.
func limitMemory() {
	memory.CollectGarbage()
	if state, err := memory.Read(); err == nil {
		debug.SetMemoryLimit(int64(max(state.Total/8, leastMemory)))
	}
}

// reload reads the settings again. If there is a mistake in them, they stay as they are.
func reload(s *monitor.Monitor, log *slog.Logger, config string, listen []string, level *slog.LevelVar) {
	settings, err := loadSettings(config, listen, false)
	if err != nil {
		log.Error("the settings stay as they are", "error", err)
		return
	}
	level.Set(levelOf(settings.LogLevel))
	s.Reload(settings)
}

// leaveLogin makes a daemon that was started in a login outlive it, if the system allows that.
func leaveLogin(log *slog.Logger) {
	if !systemd.InLogin() {
		return
	}
	scopes := systemd.FindScopes()
	if scopes == nil {
		if warning := systemd.EndsAtLogout(context.Background()); warning != "" {
			log.Warn(warning)
		}
		return
	}
	err := scopes.Move(context.Background(), os.Getpid(), systemd.Scope{
		Unit:        fmt.Sprintf("qtd-%d.scope", os.Getpid()),
		Slice:       "quicterm.slice",
		Description: "quicterm daemon that was started in a login",
	})
	if err != nil {
		log.Warn("the daemon may end with the login in which it was started", "error", err)
	}
}
