//go:build linux || darwin

package client

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// The server learns that the client knows how the program has ended, although nothing reaches it for three
// seconds after that: it keeps no session as exited.
func TestEndReachesServer(t *testing.T) {
	link := netem.Config{Delay: 5 * time.Millisecond}
	inWorld(t, link, true, func(w *world) {
		s := w.attach(Streams{})
		done := make(chan error, 1)
		go func() {
			_, err := s.Run(context.Background())
			done <- err
		}()
		time.Sleep(time.Second)
		w.net.Do(func() { w.ports[0].to.Set(netem.Config{Down: true}) })
		w.program.In.CloseWithError(io.EOF)
		time.Sleep(3 * time.Second)
		w.net.Do(func() { w.ports[0].to.Set(link) })
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Millisecond)
		if n := len(w.holders.Sessions(0)); n != 0 {
			t.Error("the session is kept, as if no client knew its end")
		}
	})
}
