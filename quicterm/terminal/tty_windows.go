package terminal

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// OpenTTY opens the console of this process, or fails if there is none.
func OpenTTY() (*TTY, error) {
	in, err := os.OpenFile("CONIN$", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile("CONOUT$", os.O_RDWR, 0)
	if err != nil {
		in.Close()
		return nil, err
	}
	return &TTY{in, out}, nil
}

// makeRaw makes the console pass on every key in the form that other terminals have,
// without echo, and understand control sequences. The function that it returns undoes that.
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
func terminalSize(f *os.File) (wire.Size, bool) {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return wire.Size{}, false
	}
	return wire.Size{Cols: uint16(cols), Rows: uint16(rows)}, true
}

// watchStops returns no way to suspend: Windows has no jobs.
func watchStops(func(), func(func())) (suspend, stop func()) { return nil, func() {} }

// sizeInterval is the time between two looks at the size: Windows has no signal for it.
const sizeInterval = 500 * time.Millisecond

// watchSize calls changed when the size of the terminal has changed, until stop is
// called. Stop waits for a call that runs.
func watchSize(changed func()) (stop func()) {
	ticker := time.NewTicker(sizeInterval)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
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
	})
	return func() {
		ticker.Stop()
		close(done)
		wg.Wait()
	}
}
