//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// stopTimeout bounds how long a stop takes to begin. The kernel ignores it in a job that no shell could continue.
const stopTimeout = 100 * time.Millisecond

// watchStops calls continued when this process continues after a stop that it did not ask for. Suspend
// calls around with a function that stops the job of this process, as Ctrl-Z does on other terminals, and
// returns when it continues. Both calls are made by one goroutine, which stop waits for.
func watchStops(continued func(), around func(stop func())) (suspend, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCONT)
	requests := make(chan chan struct{})
	done := make(chan struct{})
	stopJob := func() {
		select {
		case <-signals: // of an earlier stop
		default:
		}
		syscall.Kill(0, syscall.SIGTSTP)
		select {
		case <-signals:
		case <-time.After(stopTimeout):
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-signals:
				continued()
			case answered := <-requests:
				around(stopJob)
				close(answered)
			case <-done:
				return
			}
		}
	})
	suspend = func() {
		answered := make(chan struct{})
		select {
		case requests <- answered:
			<-answered
		case <-done:
		}
	}
	return suspend, func() {
		signal.Stop(signals)
		close(done)
		wg.Wait()
	}
}
