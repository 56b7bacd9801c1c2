package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/reach"
)

// passSignals passes the first signal that would end qt on to the command. SIGHUP and a
// second signal end qt at once, and the holder hangs the command up. Stop is to be
// called after the session's end; it returns the signal that ended qt, or 0.
func passSignals(s *client.Session) (stop func() syscall.Signal) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	var ended syscall.Signal
	var wg sync.WaitGroup
	wg.Go(func() {
		for passed := false; ; passed = true {
			select {
			case received := <-signals:
				sig := received.(syscall.Signal)
				if passed || sig == syscall.SIGHUP {
					ended = sig
					s.Leave()
					continue
				}
				if sig != syscall.SIGINT { // which the user types, and the command is to answer
					say(signalPassed, reach.SignalNames[sig])
				}
				wg.Go(func() { s.Signal(reach.SignalNames[sig]) }) // blocks while there is no room for input
			case <-done:
				return
			}
		}
	})
	return func() syscall.Signal {
		signal.Stop(signals)
		close(done)
		wg.Wait()
		return ended
	}
}
