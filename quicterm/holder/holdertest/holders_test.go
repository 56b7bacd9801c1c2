//go:build linux || darwin

package holdertest

import (
	"testing"

	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A holder that refuses a carrier closes it, as its process does.
func TestRefusalClosesCarrier(t *testing.T) {
	h := New(func(l *wire.Launch) holder.Program { return programtest.NewStub(l.PTY) })
	defer h.Wait()
	launch := &wire.Launch{ID: wire.SessionID{1}, PTY: true}
	if err := h.Start(t.Context(), nil, launch); err != nil {
		t.Fatal(err)
	}
	defer h.Kill()
	m, err := wire.New(&wire.Resume{ID: launch.ID})
	if err != nil {
		t.Fatal(err)
	}
	for _, datagrams := range []bool{false, true} {
		answer, c, err := h.Carry(t.Context(), 0, launch.ID, &wire.Open{}, m, datagrams)
		if err != nil || answer.Type != wire.TypeDenied {
			t.Fatalf("answered with message %d, %v; want Denied", answer.Type, err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("the carrier is open")
		}
	}
}
