package main

import (
	"os"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

// openTerminal opens the console for questions, or fails if there is none.
func openTerminal() (*terminal, error) {
	in, err := os.OpenFile("CONIN$", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile("CONOUT$", os.O_RDWR, 0)
	if err != nil {
		in.Close()
		return nil, err
	}
	return &terminal{in, out}, nil
}

// makeRaw has the terminal pass on all that is typed, in the form that
// terminals elsewhere have it, and understand control sequences, until restore
// is called.
func makeRaw(fd int) (restore func(), err error) {
	old, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	var mode uint32
	out := windows.Handle(os.Stdout.Fd())
	console := windows.GetConsoleMode(out, &mode) == nil
	if console {
		windows.SetConsoleMode(out, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING|windows.DISABLE_NEWLINE_AUTO_RETURN)
	}
	return func() {
		if console {
			windows.SetConsoleMode(out, mode)
		}
		term.Restore(fd, old)
	}, nil
}

// terminalSize returns the size of a terminal.
func terminalSize(f *os.File) ([4]uint16, bool) {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return [4]uint16{}, false
	}
	return [4]uint16{uint16(cols), uint16(rows)}, true
}

// sizeInterval is how often the size is looked at: there is no signal for it.
const sizeInterval = 500 * time.Millisecond

// watchSize calls changed whenever the terminal's size has, until stop is called.
func watchSize(changed func()) (stop func()) {
	ticker := time.NewTicker(sizeInterval)
	done := make(chan struct{})
	go func() {
		last := windowSize()
		for {
			select {
			case <-ticker.C:
				if now := windowSize(); now != last {
					last = now
					changed()
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
	}
}
