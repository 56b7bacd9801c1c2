//go:build linux || darwin

package client

import (
	"context"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// A client that is attached says the name that another one has given to the session.
func TestRenameWhileAttached(t *testing.T) {
	inWorld(t, netem.Config{Delay: 5 * time.Millisecond}, true, func(w *world) {
		var cfg Config
		w.config = func(c *Config) { cfg = *c }
		s := w.attach(Streams{})
		done := make(chan error, 1)
		go func() {
			_, err := s.Run(context.Background())
			done <- err
		}()
		time.Sleep(time.Second)
		other := New(cfg)
		defer other.Close()
		if err := other.Rename(context.Background(), s.Name(), "web"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if name := s.Name(); name != "web" {
			t.Errorf("the session is named %q", name)
		}
		s.Write([]byte{4})
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Several sessions end by one request, and what fails does not keep the others from it.
func TestKillSeveral(t *testing.T) {
	inWorld(t, netem.Config{Delay: 5 * time.Millisecond}, true, func(w *world) {
		var cfg Config
		w.config = func(c *Config) { cfg = *c }
		s := w.attach(Streams{})
		done := make(chan error, 1)
		go func() {
			_, err := s.Run(context.Background())
			done <- err
		}()
		time.Sleep(time.Second)
		other := New(cfg)
		defer other.Close()
		errs := other.Kill(context.Background(), "none", s.Name(), "neither")
		if len(errs) != 3 || errs[0] == nil || errs[1] != nil || errs[2] == nil {
			t.Errorf("got %v", errs)
		}
		<-done
	})
}
