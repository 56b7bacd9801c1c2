//go:build linux || darwin

package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/server"
)

func serveCommand() *cobra.Command {
	var config string
	var listen []string
	var granted bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve sessions over QUIC",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) (err error) {
			if !granted {
				return serve(config, listen, false, func() {})
			}
			report := reporter()
			defer func() { report(err) }()
			// The daemon outlives its parent: it gives up terminal, locks and pipes.
			signal.Ignore(syscall.SIGHUP)
			holder.CloseInherited(reportFD + 1)
			return serve(config, listen, true, func() { report(nil) })
		},
	}
	addConfigFlag(c, &config)
	c.Flags().StringArrayVar(&listen, "listen", nil, "UDP `address:port` to serve, instead of the setting listen; may be repeated")
	c.Flags().BoolVar(&granted, "granted", false, "")
	c.Flags().MarkHidden("granted")
	return c
}

// serve runs the daemon until SIGINT or SIGTERM. It calls ready when the daemon listens.
func serve(config string, listen []string, granted bool, ready func()) error {
	settings, err := configs.LoadServer(config)
	if err != nil {
		return err
	}
	if len(listen) > 0 {
		settings.Listen = listen
	}
	// Logins leave more garbage than the daemon has memory, and relaying leaves none:
	// less memory is worth the time of more collections.
	debug.SetGCPercent(25)
	// A failed write to the log must not end the daemon.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	log := newLog(os.Stderr, settings.LogLevel, settings.LogFormat)
	defer log.Close()
	server, err := server.New(server.Config{
		Settings:   settings,
		Log:        log.Logger(),
		Granted:    granted,
		HolderArgs: []string{"--log-level", settings.LogLevel, "--log-format", settings.LogFormat},
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return server.ListenAndServe(ctx, ready)
}
