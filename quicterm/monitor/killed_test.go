//go:build linux || darwin

package monitor

import (
	"testing"

	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// That a holder was killed learns who knows the mark of its session, until it is restored. Others learn nothing from
// an answer, and the memory for it is bounded.
func TestKilledIsTold(t *testing.T) {
	s := &Monitor{boot: holder.CurrentBoot(), Sessions: new(Sessions)}
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
