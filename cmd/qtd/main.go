//go:build linux || darwin

// Command qtd is the daemon of quicterm, and what a daemon starts, by hidden commands: the network process, the holder
// of a session, and processes that read the keys of an account or open its session of PAM.
package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/forward/permit"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/keyfile"
	"github.com/quicterm/quicterm/quicterm/machine/logqueue"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
	"github.com/quicterm/quicterm/quicterm/version"
)

func main() {
	if err := command().Execute(); err != nil {
		if !errors.Is(err, errChecks) {
			fmt.Fprintf(os.Stderr, "qtd: %v\n", err)
		}
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "qtd",
		Short:         "The daemon of quicterm: accepts clients and keeps their sessions",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.String(),
	}
	root.SetVersionTemplate(software() + "\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: %s --help lists the flags", err, c.CommandPath())
	})
	root.AddCommand(serveCommand(), grantCommand(), statusCommand(), lsCommand(), endCommand(), revokeCommand(),
		getCommand(), drainCommand(), doctorCommand(), checkCommand(), holdCommand(), networkCommand(), &cobra.Command{
			Use:   "version",
			Short: "Print the version",
			Args:  cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				_, err := fmt.Fprintln(c.OutOrStdout(), software())
				return err
			},
		})
	hidden := func(use string, args cobra.PositionalArgs, run func(args []string) error) *cobra.Command {
		c := &cobra.Command{Use: use, Hidden: true, Args: args}
		c.RunE = func(_ *cobra.Command, args []string) error { return run(args) }
		root.AddCommand(c)
		return c
	}
	hidden(permit.Command, cobra.NoArgs, forwardConnections)
	root.AddCommand(sftpCommand())
	hidden(relayUsage, cobra.MinimumNArgs(1), relay)
	hidden(pam.RunCommand, cobra.NoArgs, func([]string) error { return pam.Run() })
	hidden(keyfile.Command, cobra.NoArgs, func([]string) error {
		spawn.CloseInherited(keyfile.Output + 1)
		return keyfile.Main()
	})
	hidden(pam.OpenCommand, nil, holder.OpenLogin).DisableFlagParsing = true
	showUsage(root)
	return root
}

// showUsage makes an error about the number of arguments show the usage of its command.
func showUsage(root *cobra.Command) {
	for _, one := range root.Commands() {
		if check := one.Args; check != nil {
			one.Args = func(c *cobra.Command, args []string) error {
				if check(c, args) != nil {
					return fmt.Errorf("wrong number of arguments, %d: use %s", len(args), c.UseLine())
				}
				return nil
			}
		}
	}
}

func addConfigFlag(c *cobra.Command, config *string) {
	c.Flags().StringVar(config, "config", "", "settings `file` to read instead of the default one")
}

const (
	// holdersLog is the name of the log of holders that do not write to standard error.
	holdersLog = "holders.log"

	// logBaseFlag is the flag of a holder that has the setting runtime_dir for that log.
	logBaseFlag = "log-base"
)

// holdCommand returns the hidden command that the daemon runs for each session.
func holdCommand() *cobra.Command {
	var level, base, login string
	var ownLog bool
	c := &cobra.Command{
		Use:    spawn.Command,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var log io.Writer = os.Stderr
			if ownLog {
				// A session without a log is better than none.
				log = io.Discard
				if f, err := openLog(base, holdersLog); err == nil {
					log = f
					debug.SetCrashOutput(f.file, debug.CrashOptions{})
				}
			}
			queue := newLog(log, levelOf(level))
			defer queue.Close()
			return holder.Main(queue.Logger(), software(), login)
		},
	}
	c.Flags().StringVar(&level, "log-level", "info", "")
	c.Flags().BoolVar(&ownLog, spawn.OwnLogFlag[2:], false, "")
	c.Flags().StringVar(&base, logBaseFlag, "", "")
	c.Flags().StringVar(&login, pam.SessionFlag[2:], "", "")
	return c
}

func software() string { return "qtd " + version.String() }

func levelOf(name string) slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err != nil {
		return slog.LevelInfo
	}
	return l
}

// newLog starts a log. Sessions do not wait for it: lines are written under their locks.
func newLog(w io.Writer, level slog.Leveler) *logqueue.Queue {
	options := &slog.HandlerOptions{Level: level}
	return logqueue.Start(w, func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, options) })
}
