//go:build linux || darwin

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// reportFD is the descriptor on which a daemon that a grant started reports: it
	// closes it when it listens, and writes its error before that if it fails.
	reportFD = 3

	// startTimeout bounds how long such a daemon may take to listen.
	startTimeout = 10 * time.Second
)

// grantedLog is the name of the log of a daemon that a grant started.
const grantedLog = "qtd.log"

func grantCommand() *cobra.Command {
	var config string
	var stdio, overSSH bool
	c := &cobra.Command{
		Use:   "grant",
		Short: "Give a client access to this account, and start a daemon if none runs",
		Long: `Print a grant: the daemon's address and host key, and a token for one login to this
account. If no daemon runs that serves it, start one for this account alone.

With --stdio, standard input and output are the connection of a client that is logged
in, as SPEC.md has it: qt runs this by ssh.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			settings, err := configs.LoadServer(config)
			if err != nil {
				return err
			}
			if settings.Grants == "off" {
				return errors.New("the setting grants is off: log in with a key")
			}
			if config != "" { // the daemon works in another directory
				if config, err = filepath.Abs(config); err != nil {
					return err
				}
			}
			warning := ""
			start := func() error {
				warning = systemd.EndsAtLogout(c.Context())
				return startGranted(settings, config)
			}
			if stdio {
				return carryStdio(settings.RuntimeDir, start, &warning)
			}
			ask := bootstrap.Ask
			if overSSH {
				ask = bootstrap.AskOverSSH
			}
			grant, err := ask(settings.RuntimeDir, start)
			if err != nil {
				return err
			}
			grant.Warning = warning
			line, err := bootstrap.Line(grant)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), line)
			return err
		},
	}
	addConfigFlag(c, &config)
	c.Flags().BoolVar(&stdio, "stdio", false, "be the connection of a client over standard input and output")
	c.Flags().BoolVar(&overSSH, "ssh", false, "the client comes from another machine, over ssh: listen there as well")
	return c
}

// startGranted starts a daemon for this account alone, detached from our terminal and
// process group, and waits until it listens.
func startGranted(settings *configs.Server, config string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := openLog(settings.RuntimeDir, grantedLog)
	if err != nil {
		return err
	}
	defer log.file.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	os.Unsetenv(wire.SocketVariable) // it is not a program of the session that this may run in
	cmd := exec.Command(exe, "serve", "--granted", "--config", config)
	cmd.Dir = "/"
	cmd.Stderr = log.file
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return fmt.Errorf("start a daemon: %w", err)
	}
	defer cmd.Process.Release()
	r.SetReadDeadline(time.Now().Add(startTimeout))
	failure, err := io.ReadAll(io.LimitReader(r, 4<<10))
	if err != nil {
		return fmt.Errorf("start a daemon: %w: see %s", err, log.name)
	}
	if len(failure) > 0 {
		return errors.New(string(failure))
	}
	return nil
}

// reporter returns a function whose first call reports to the process that started this
// daemon: nil when it listens, or an error.
func reporter() func(error) {
	f := os.NewFile(reportFD, "report")
	var once sync.Once
	return func(err error) {
		once.Do(func() {
			if err != nil {
				fmt.Fprint(f, err)
			}
			f.Close()
		})
	}
}
