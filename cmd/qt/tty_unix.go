//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// makeRaw has the terminal pass on all that is typed.
func makeRaw(fd int) (*term.State, error) { return term.MakeRaw(fd) }

// terminalSize returns the size of a terminal, pixels included.
func terminalSize(f *os.File) ([4]uint16, bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || ws.Col == 0 || ws.Row == 0 {
		return [4]uint16{}, false
	}
	return [4]uint16{ws.Col, ws.Row, ws.Xpixel, ws.Ypixel}, true
}

// watchSize calls changed whenever the terminal's size may have, until stop is
// called.
func watchSize(changed func()) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-signals:
				changed()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}
