package buffer

import (
	"testing"

	"pgregory.net/rapid"
)

func TestWindowReorders(t *testing.T) {
	w := NewReorderWindow(1, 100, 1<<20)
	steps := []struct {
		seq  uint64
		want Verdict
		out  []uint64
	}{
		{2, Held, nil},
		{4, Held, nil},
		{2, Duplicate, nil},
		{1, Accepted, []uint64{1, 2}},
		{1, Duplicate, nil},
		{103, Beyond, nil},
		{102, Held, nil},
		{3, Accepted, []uint64{3, 4}},
	}
	for _, s := range steps {
		if got := w.Offer(Frame{Seq: s.seq}); got != s.want {
			t.Errorf("Offer(%d) = %v, want %v", s.seq, got, s.want)
		}
		for _, want := range s.out {
			if f, ok := w.Pop(); !ok || f.Seq != want {
				t.Errorf("after %d: popped %d, %v; want %d", s.seq, f.Seq, ok, want)
			}
		}
		if f, ok := w.Pop(); ok {
			t.Errorf("after %d: popped %d as well", s.seq, f.Seq)
		}
	}
	if earlyFrames(w) != 1 {
		t.Errorf("%d frames held, want 1", earlyFrames(w))
	}
	w.SkipTo(102)
	if f, ok := w.Pop(); !ok || f.Seq != 102 || w.Next() != 103 {
		t.Errorf("after skipping to 102: popped %d, %v, next %d", f.Seq, ok, w.Next())
	}
}

func TestWindowBytes(t *testing.T) {
	w := NewReorderWindow(1, 100, 1000)
	if got := w.Offer(Frame{Seq: 2, Payload: make([]byte, 900)}); got != Held {
		t.Errorf("first early frame: %v, want Held", got)
	}
	if got := w.Offer(Frame{Seq: 3, Payload: make([]byte, 900)}); got != Beyond {
		t.Errorf("early frame without memory for it: %v, want Beyond", got)
	}
	if got := w.Offer(Frame{Seq: 1, Payload: make([]byte, 9000)}); got != Accepted {
		t.Errorf("next frame: %v, want Accepted whatever is held", got)
	}
}

func TestWindowAgainstModel(t *testing.T) {
	rapid.Check(t, checkWindow)
}

func FuzzWindow(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(checkWindow))
}

func checkWindow(t *rapid.T) {
	const maxBytes = 600
	frames := rapid.IntRange(1, 20).Draw(t, "frames")
	next := rapid.Uint64Range(1, 1000).Draw(t, "next")
	w := NewReorderWindow(next, frames, maxBytes)
	early := map[uint64]Frame{}
	bytes := func() (n int) {
		for _, f := range early {
			n += frameMemory(f)
		}
		return n
	}
	seqs := func(t *rapid.T) uint64 {
		return next + rapid.Uint64Range(0, uint64(frames)+10).Draw(t, "ahead") - min(next, rapid.Uint64Range(0, 10).Draw(t, "behind"))
	}
	pop := func(t *rapid.T) {
		for {
			want, ok := early[next]
			f, got := w.Pop()
			if got != ok || f.Seq != want.Seq || len(f.Payload) != len(want.Payload) {
				t.Fatalf("popped %d, %v; want %d, %v", f.Seq, got, want.Seq, ok)
			}
			if !ok {
				return
			}
			delete(early, next)
			next++
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"offer": func(t *rapid.T) {
			f := Frame{Seq: seqs(t), Payload: make([]byte, rapid.IntRange(0, 200).Draw(t, "bytes"))}
			_, known := early[f.Seq]
			var want Verdict
			switch {
			case f.Seq < next || known:
				want = Duplicate
			case f.Seq >= next+uint64(frames) || f.Seq > next && bytes()+frameMemory(f) > maxBytes:
				want = Beyond
			case f.Seq > next:
				want = Held
			}
			if got := w.Offer(f); got != want {
				t.Fatalf("Offer(%d) = %v, want %v", f.Seq, got, want)
			}
			if want == Accepted || want == Held {
				early[f.Seq] = f
			}
			pop(t)
		},
		"skip": func(t *rapid.T) {
			to := seqs(t)
			w.SkipTo(to)
			for seq := range early {
				if seq < to {
					delete(early, seq)
				}
			}
			next = max(next, to)
			pop(t)
		},
		"": func(t *rapid.T) {
			if w.Next() != next || earlyFrames(w) != len(early) || w.bytes != bytes() {
				t.Fatalf("next %d with %d frames, %d bytes; want %d with %d, %d",
					w.Next(), earlyFrames(w), w.bytes, next, len(early), bytes())
			}
		},
	})
}

// earlyFrames returns how many frames are held for want of an earlier one.
func earlyFrames(w *ReorderWindow) int {
	n := 0
	for _, s := range w.slots {
		if s.full {
			n++
		}
	}
	return n
}
