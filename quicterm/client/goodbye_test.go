//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/quicterm/wire"
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

// What was typed before a client leaves reaches the program, although an answer is overdue then.
func TestInputReachesServer(t *testing.T) {
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
		s.Write([]byte("typed"))
		time.Sleep(300 * time.Millisecond)
		if state := s.Status().Link.State; state != Suspect {
			t.Errorf("the link is %v, want %v", state, Suspect)
		}
		s.Leave()
		time.Sleep(100 * time.Millisecond)
		w.net.Do(func() { w.ports[0].to.Set(link) })
		if err := <-done; !errors.Is(err, ErrLeft) {
			t.Error(err)
		}
		var shown bytes.Buffer
		again, err := w.tryAttach(&wire.Attach{Mode: wire.ModeAttach, Session: "world", PTY: true}, Streams{Stdout: &shown})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			again.Leave()
		}()
		again.Run(context.Background())
		if !strings.Contains(shown.String(), "typed") {
			t.Errorf("the program has printed %q", shown.String())
		}
		w.program.Signal(0)
	})
}
