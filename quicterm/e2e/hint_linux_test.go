package e2e

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/work"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A daemon's hint says when a login shell is in the foreground, and when a program in it is.
func TestHintOfShell(t *testing.T) {
	h := newHost(t)
	h.Start()
	c, err := work.LibraryClient(h.Addr, h.Dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var newest atomic.Pointer[wire.Hint]
	s, err := c.Attach(ctx, &wire.Attach{Mode: wire.ModeCreate, PTY: true, Size: wire.Size{Cols: 80, Rows: 24}},
		client.Streams{Hinted: func(h wire.Hint) { newest.Store(&h) }})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		c.Kill(ctx, s.Name())
		<-ended
		cancel()
	})
	wantShell := func(what string, want bool) {
		t.Helper()
		until := time.Now().Add(rig.Patience)
		for {
			hint := newest.Load()
			if hint != nil && (hint.Terminal&wire.Shell != 0) == want {
				return
			}
			if time.Now().After(until) {
				t.Fatalf("%s: the hint is %+v", what, hint)
			}
			s.AskHint()
			time.Sleep(20 * time.Millisecond)
		}
	}
	wantShell("a prompt", true)
	s.Write([]byte("cat\n"))
	wantShell("a program", false)
	s.Write([]byte("\x04"))
	wantShell("the prompt after it", true)
}
