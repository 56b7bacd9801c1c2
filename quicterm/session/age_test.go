package session

import (
	"slices"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// What was appended is old after agedAfter, to the second, and the record stays short.
func TestAges(t *testing.T) {
	begun := time.Unix(1000, 0)
	a := new(ages)
	want := func(after time.Duration, next uint64) {
		t.Helper()
		if got := a.aged(begun.Add(after)); got != next {
			t.Errorf("after %v, %d is the first frame that is not old, want %d", after, got, next)
		}
	}
	want(0, 0)
	a.appended(begun, 2)
	a.appended(begun.Add(900*time.Millisecond), 3)
	want(agedAfter, 0)
	want(agedAfter+800*time.Millisecond, 0)
	want(agedAfter+901*time.Millisecond, 3)
	a.appended(begun.Add(10*time.Second), 4)
	want(14*time.Second, 3)
	want(16*time.Second, 4)
	for i := range 10_000 {
		a.appended(begun.Add(time.Minute+time.Duration(i)*10*time.Millisecond), uint64(5+i))
	}
	if most := int(agedAfter/ageStep) + 3; len(a.list) > most {
		t.Errorf("%d ages are kept, want at most %d", len(a.list), most)
	}
}

// Frames that are old when they are sent come behind an Aged frame, on either lane.
func TestAgedFramesAreMarked(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, maxDatagram := range []int{0, 1100} {
		ring := buffer.NewRing(1 << 20)
		e := NewEndpoint(Config{Log: ring, Acked: 1, Next: 1, Window: 1 << 20, TellAge: true})
		size := 1 // so small that it goes by datagram
		if maxDatagram == 0 {
			size = 2000
		}
		ring.Append(1, make([]byte, size))
		e.Appended(now)
		later := now.Add(time.Minute)
		ring.Append(1, []byte("new"))
		e.Appended(later)
		id := e.Up(later, maxDatagram, true)
		var types []buffer.Type
		collect := func(b []byte) {
			for len(b) > 0 {
				f, n, err := buffer.Parse(b)
				if err != nil {
					t.Fatal(err)
				}
				types = append(types, f.Type)
				if next, err := parseAged(f.Payload); f.Type == aged && (err != nil || next != 2) {
					t.Errorf("Aged says %d, %v; want 2", next, err)
				}
				b = b[n:]
			}
		}
		for b := e.Stream(later, id, 1<<16); b != nil; b = e.Stream(later, id, 1<<16) {
			collect(b)
		}
		if maxDatagram > 0 {
			collect(e.Datagram(later, id, nil))
		}
		first := slices.Index(types, aged)
		if first < 0 || slices.Index(types, 1) < first {
			t.Errorf("frames of types %x, want %x before those of the log", types, aged)
		}
	}
}
