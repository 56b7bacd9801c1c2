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

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/rundir"
)

const (
	// reportFD is the descriptor on which a daemon that a grant started says
	// that it listens, by closing it, or why it does not.
	reportFD = 3

	// startTime bounds how long that may take.
	startTime = 10 * time.Second

	// maxLog is how long the log of such daemons may be when one starts.
	maxLog = 1 << 20
)

// startGranted starts a daemon for this account alone, detached from whoever
// asks for the grant, and waits until it listens.
func startGranted(settings *configs.Server, config string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := openLog(settings)
	if err != nil {
		return err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(exe, "serve", "--granted", "--config", config)
	cmd.Dir = "/"
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return fmt.Errorf("start a daemon: %w", err)
	}
	defer cmd.Process.Release()
	r.SetReadDeadline(time.Now().Add(startTime))
	why, err := io.ReadAll(io.LimitReader(r, 4<<10))
	if err != nil {
		return fmt.Errorf("start a daemon: %w: see %s", err, log.Name())
	}
	if len(why) > 0 {
		return errors.New(string(why))
	}
	return nil
}

// openLog opens the log of the daemons that grants start.
func openLog(settings *configs.Server) (*os.File, error) {
	dir, err := rundir.Base(settings.RuntimeDir).Make(uint32(os.Geteuid()))
	if err != nil {
		return nil, err
	}
	return appendLog(filepath.Join(dir, "qtd.log"))
}

// appendLog opens a log, and puts it aside first if it is long.
func appendLog(name string) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && info.Size() > maxLog {
		os.Rename(name, name+".old")
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

// reporter returns a function that tells whoever started this daemon how that
// went, the first time it is called.
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
