package session

import (
	"testing"
	"time"
)

// An end knows when the frame that the peer waits for has changed in the log: no carrier could bring it.
func TestDamagedFrame(t *testing.T) {
	w := newWorld(t, 1)
	end := w.ends[1]
	l := w.connect()
	w.append(1, 10)
	changed := func(want bool, why string) {
		t.Helper()
		if got := end.endpoint.Damaged(); got != want {
			t.Errorf("%s: damaged %v, want %v", why, got, want)
		}
	}
	changed(false, "as it was appended")
	w.settle(time.Minute)
	w.cut(l)
	changed(false, "all is received")
	w.append(1, 10)
	b, _ := end.ring.Slice(2, 1)
	b[len(b)-5] ^= 1
	changed(true, "changed before a carrier brings it")
	end.endpoint.GiveUp()
	changed(false, "given up")
}
