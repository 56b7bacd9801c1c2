//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// OpenTTY opens the terminal of this process, or fails if there is none.
func OpenTTY() (*TTY, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	return &TTY{f, f}, err
}

// makeRaw makes a terminal pass on every key unchanged, without echo and signals. The
// function that it returns undoes that.
func makeRaw(fd int) (restore func(), err error) {
	old, err := term.MakeRaw(fd)
	return func() { term.Restore(fd, old) }, err
}

// terminalSize returns the size of a terminal, with pixels.
func terminalSize(f *os.File) (wire.Size, bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || ws.Col == 0 || ws.Row == 0 {
		return wire.Size{}, false
	}
	return wire.Size{Cols: ws.Col, Rows: ws.Row, XPixel: ws.Xpixel, YPixel: ws.Ypixel}, true
}

// watchSize calls changed when the size of the terminal may have changed, until stop is
// called. Stop waits for a call that runs.
func watchSize(changed func()) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-signals:
				changed()
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(done)
		wg.Wait()
	}
}
