//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// openTerminal opens the terminal for questions, or fails if there is none.
func openTerminal() (*terminal, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	return &terminal{tty, tty}, err
}

// makeRaw has the terminal pass on all that is typed, until restore is called.
func makeRaw(fd int) (restore func(), err error) {
	old, err := term.MakeRaw(fd)
	return func() { term.Restore(fd, old) }, err
}

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
