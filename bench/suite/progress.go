//go:build linux

package suite

import (
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// newBar returns a progress bar, which shows on a terminal until done is called.
func newBar(steps int) (bar *progressbar.ProgressBar, done func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return progressbar.DefaultSilent(int64(steps)), func() {}
	}
	bar = progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionShowCount(),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish())
	tick := time.NewTicker(time.Second)
	stop := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		for {
			select {
			case <-tick.C:
				bar.RenderBlank() // again, with the time
			case <-stop:
				return
			}
		}
	})
	return bar, sync.OnceFunc(func() {
		tick.Stop()
		close(stop)
		ticking.Wait()
		bar.Finish()
	})
}
