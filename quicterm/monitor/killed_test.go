//go:build linux || darwin

package monitor

import (
	"context"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// That a holder was killed learns who knows the mark of its session, until it is restored. Others learn nothing from
// an answer, and the memory for it is bounded.
func TestKilledIsTold(t *testing.T) {
	s := &Monitor{boot: persist.CurrentBoot(), Sessions: new(Sessions)}
	id := wire.SessionID{1}
	own := s.boot.Mark(id)
	if own == (wire.BootMark{}) {
		t.Skip("the system does not name its boot")
	}
	want := func(mark wire.BootMark, gone bool) {
		t.Helper()
		if got := s.isGone(&wire.Resume{ID: id, Boot: mark}); got != gone {
			t.Errorf("gone is %v for the mark %x, want %v", got, mark, gone)
		}
	}
	other := own
	other[0]++
	for _, killed := range []bool{false, true, false} {
		s.census.setKilled(id, killed)
		want(own, killed)
		want(wire.BootMark{}, false)
		want(other, true)
	}
}

// Sessions that are killed by one request end at the same time, whatever their programs do, and the answer says why
// others do not.
func TestKillAll(t *testing.T) {
	onHost(t, func(h *host) {
		a, b := h.attach(), h.attach()
		h.setHolders(stubborn{h.holders})
		kill := &wire.Kill{Session: a.Name, Others: []string{"none", b.ID.String(), a.Name}}
		m, err := wire.New(kill)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		p := &privsep.Pass{By: *h.by(), Session: a.Name, Others: kill.Others, Type: m.Type, Payload: m.Payload}
		answer, err := h.server.Pass(h.t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != stubbornTime {
			t.Errorf("killed after %v, want %v", d, stubbornTime)
		}
		var killed wire.Killed
		if err := wire.Message(*answer).Decode(&killed); err != nil || len(killed.Errors) != 4 {
			t.Fatalf("%+v, %v", killed, err)
		}
		for i, want := range []wire.Code{wire.CodeFailed, wire.CodeNoSession, wire.CodeFailed} {
			if got := killed.Errors[i]; got.Code != want || (got.Text != "") != (want == wire.CodeNoSession) {
				t.Errorf("session %d: %+v", i, got)
			}
		}
	})
}

// A stubborn has holders whose programs take stubbornTime to end.
type stubborn struct{ *holdertest.Holders }

const stubbornTime = 3 * time.Second

func (s stubborn) Ask(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message,
) (wire.Message, error) {
	if m.Type == wire.TypeKill {
		time.Sleep(stubbornTime)
	}
	return s.Holders.Ask(ctx, uid, id, open, m)
}
