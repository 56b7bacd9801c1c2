package privsep

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/panics"
)

// linkPair returns the process of a hub, whose monitor is in this process too, and what the monitor knows of it.
func linkPair(t *testing.T, relay func(context.Context, net.Conn, Caller)) (*Linked, *linkSession) {
	host := &LinkHost{
		Setup:  LinkSetup{URL: "https://hub.example", Name: "box"},
		Prove:  func(r *HubLogin) (*HubProof, error) { return &HubProof{Format: r.NKey}, nil },
		Relay:  relay,
		Log:    slog.New(slog.DiscardHandler),
		Panics: panics.New(),
	}
	s := &linkSession{link: &Link{host: host}, turns: make(chan struct{}, maxHandovers)}
	ours, theirs := pair(t)
	c, l := s.channel(ours), newLinked(theirs)
	done := make(chan error, 2)
	go func() { done <- c.run(context.Background()) }()
	go func() { done <- l.Run(context.Background()) }()
	t.Cleanup(func() {
		l.Close()
		for range 2 {
			<-done
		}
	})
	return l, s
}

// A client that the hub relays gets one end of a pair, and the network half the other.
func TestLink(t *testing.T) {
	far := make(chan net.Conn, 1)
	l, _ := linkPair(t, func(_ context.Context, c net.Conn, caller Caller) {
		if caller != (Caller{7}) {
			t.Errorf("the caller is %v", caller)
		}
		far <- c
	})
	if setup, err := l.Setup(t.Context(), new(None)); err != nil || setup.Name != "box" {
		t.Fatal(setup, err)
	}
	taken, err := l.Take(t.Context(), &Caller{7})
	if err != nil {
		t.Fatal(err)
	}
	served := <-far
	if _, err := taken.Conn.Write([]byte("hello")); err != nil {
		t.Error(err)
	}
	taken.Conn.Close()
	if got, err := io.ReadAll(served); string(got) != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	served.Close()
}

// A process that was taken over gets one signature, has few connections handed over at once, and cannot control the
// terminal of who reads the log.
func TestHostileLink(t *testing.T) {
	handing, hold := make(chan struct{}, 2*maxHandovers), make(chan struct{})
	l, s := linkPair(t, func(_ context.Context, c net.Conn, _ Caller) {
		handing <- struct{}{}
		<-hold
		c.Close()
	})
	if _, err := l.Prove(t.Context(), &HubLogin{NKey: "U"}); err != nil {
		t.Error(err)
	}
	for range 3 {
		if p, err := l.Prove(t.Context(), &HubLogin{NKey: "U"}); err == nil || err.Error() != errProvenTwice.Error() {
			t.Errorf("a second signature: %v, %v", p, err)
		}
	}
	if _, err := l.Ended(t.Context(), &LinkEnd{Text: "\x1b[2J" + strings.Repeat("x", 5000)}); err != nil {
		t.Error(err)
	}
	if text := *s.ended.Load(); strings.Contains(text, "\x1b") || len(text) > maxShownText {
		t.Errorf("it says %q", text)
	}
	const calls = maxHandovers + 20
	ended := make(chan error, calls)
	for range calls {
		go func() {
			taken, err := l.Take(context.Background(), new(Caller))
			if err == nil {
				taken.Conn.Close()
			}
			ended <- err
		}()
	}
	for range maxHandovers {
		<-handing
	}
	if len(s.turns) != maxHandovers {
		t.Errorf("%d connections are handed over at once", len(s.turns))
	}
	close(hold)
	for range calls {
		select {
		case err := <-ended:
			if err != nil && !errors.Is(err, errNoFiles) {
				t.Error(err)
			}
		case <-time.After(replyTime * 3):
			t.Fatal("a call is not answered")
		}
	}
}
