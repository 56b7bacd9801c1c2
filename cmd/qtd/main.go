//go:build linux || darwin

// Command qtd is the daemon of quicterm.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/version"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintf(os.Stderr, "qtd: %v\n", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "qtd",
		Short:         "The daemon of quicterm: it lets qt in, and keeps its sessions",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	var config string
	addConfig := func(c *cobra.Command) *cobra.Command {
		c.Flags().StringVar(&config, "config", "", "`file` of settings")
		return c
	}
	var listen []string
	var granted bool
	serve := addConfig(&cobra.Command{
		Use:   "serve",
		Short: "Serve sessions over QUIC",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return serve(config, listen, granted)
		},
	})
	serve.Flags().StringArrayVar(&listen, "listen", nil, "UDP `address:port` to serve, instead of those in the settings; may be repeated")
	serve.Flags().BoolVar(&granted, "granted", false, "")
	serve.Flags().MarkHidden("granted")

	grant := addConfig(&cobra.Command{
		Use:   "grant",
		Short: "Print a ticket for one connection to this account, starting a daemon if none runs",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return grant(config)
		},
	})
	var level, format, logFile string
	hold := &cobra.Command{
		Use:    holder.Command,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if logFile != "" {
				f, err := appendLog(logFile)
				if err != nil {
					return err
				}
				debug.SetCrashOutput(f, debug.CrashOptions{})
				return holder.Main(newLog(f, level, format))
			}
			return holder.Main(newLog(os.Stderr, level, format))
		},
	}
	hold.Flags().StringVar(&level, "log-level", "info", "")
	hold.Flags().StringVar(&format, "log-format", "text", "")
	hold.Flags().StringVar(&logFile, holder.LogFlag[2:], "", "")
	root.AddCommand(serve, grant, hold, &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run:   func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), software()) },
	})
	return root
}

func software() string { return "qtd " + version.String() }

func newLog(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func serve(config string, listen []string, granted bool) (err error) {
	if granted {
		report := reporter()
		defer func() { report(err) }()
		// What it was started from is not ours: terminal, locks, pipes.
		signal.Ignore(syscall.SIGHUP)
		holder.CloseInherited(reportFD + 1)
		return run(config, listen, true, func() { report(nil) })
	}
	return run(config, listen, false, func() {})
}

func run(config string, listen []string, granted bool, ready func()) error {
	settings, err := configs.LoadServer(config)
	if err != nil {
		return err
	}
	if len(listen) > 0 {
		settings.Listen = listen
	}
	// What a login leaves behind is soon more than what stays, and what is
	// relayed is no garbage: memory matters more than the collector's time.
	debug.SetGCPercent(25)
	// An error of writing to the log must not end us.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	server, err := quicterm.NewServer(quicterm.ServerConfig{
		Settings:   settings,
		Log:        newLog(os.Stderr, settings.LogLevel, settings.LogFormat),
		Software:   software(),
		Granted:    granted,
		HolderArgs: []string{"--log-level", settings.LogLevel, "--log-format", settings.LogFormat},
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return server.Serve(ctx, ready)
}

// grant prints one line that qt understands, whatever else a login prints.
func grant(config string) error {
	settings, err := configs.LoadServer(config)
	if err != nil {
		return err
	}
	if config != "" { // the daemon works in another directory
		if config, err = filepath.Abs(config); err != nil {
			return err
		}
	}
	var g *wire.Grant
	if g, err = quicterm.Grant(settings.RuntimeDir, func() error { return startGranted(settings, config) }); err != nil {
		return err
	}
	line, err := g.Line()
	if err != nil {
		return err
	}
	fmt.Println(line)
	return nil
}
