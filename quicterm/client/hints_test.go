//go:build linux || darwin

package client

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Hints come in any order, and are told behind their output, the newest of several.
func TestHintsInOrder(t *testing.T) {
	var h hints
	take := func(number, out, in uint64) {
		h.take(100, wire.Hint{Out: out, In: in}.Append(nil, wire.HintsPredict, number, 100))
	}
	want := func(why string, wants ...wire.Hint) {
		t.Helper()
		for _, w := range append(wants, wire.Hint{}) {
			if got, ok := h.pop(); got != w || ok != (w != wire.Hint{}) {
				t.Errorf("%s: hint %+v, %v; want %+v", why, got, ok, w)
			}
		}
	}
	h.wrote(4)
	take(3, 6, 3)
	take(1, 5, 1)
	want("nothing is due")
	h.wrote(5)
	want("the hint behind frame 5 came late")
	take(4, 7, 3)
	if got := h.next(); got != 6 {
		t.Errorf("the next hint is due behind frame %d, want 6", got)
	}
	h.wrote(6)
	want("in its place", wire.Hint{Out: 6, In: 3})
	take(4, 7, 3)
	take(5, 7, 4)
	h.wrote(7)
	want("the newest", wire.Hint{Out: 7, In: 4})
	take(5, 7, 4)
	want("it still holds", wire.Hint{Out: 7, In: 4})
	take(4, 7, 3)
	want("an older one came late")
	take(6, 7, 5)
	want("without output", wire.Hint{Out: 7, In: 5})
	take(7, 8, 5)
	h.wrote(9)
	want("output is shown beyond it")
	h.take(100, []byte("a later version"))
	h.take(1, wire.Hint{Out: 9}.Append(nil, wire.HintsPredict, 8, 100))
	want("bytes that make no sense")

	for n := range uint64(1000) {
		take(10+n, 20+n, 1)
	}
	if len(h.waiting) > maxHints {
		t.Errorf("%d hints wait", len(h.waiting))
	}
	h.wrote(20)
	want("the first of many", wire.Hint{Out: 20, In: 1})
	h.wrote(1019)
	want("the last of many", wire.Hint{Out: 1019, In: 1})
}

// Output is not written together across the place of a hint.
func TestHintSplitsOutput(t *testing.T) {
	var got []string
	s := &Session{streams: Streams{Stdout: writerFunc(func(b []byte) (int, error) {
		got = append(got, string(b))
		return len(b), nil
	})}}
	var batch []session.Delivered
	for i, text := range []string{"a", "b", "c", "d"} {
		batch = append(batch, session.Delivered{Frame: buffer.Frame{Seq: uint64(i + 1), Type: wire.Stdout, Payload: []byte(text)}})
	}
	s.hintAt = 2
	for len(batch) > 0 {
		batch = batch[s.write(batch):]
	}
	if written := strings.Join(got, "|"); written != "ab|cd" {
		t.Errorf("written as %q", written)
	}
}

// Each hint comes when the output up to its place is written, over a path that loses a fifth and
// through a move to another address. In the end a hint tells of all input and all output.
func TestHintsInPlace(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond, Loss: 0.2}, true, func(w *world) {
		w.program.SetModes(wire.Echo|wire.Canonical, 7)
		var s *Session
		var last wire.Hint
		told := 0
		s = w.attach(Streams{
			Stdout: writerFunc(func(b []byte) (int, error) { return len(b), nil }),
			Hinted: func(h wire.Hint) {
				told++
				s.gate.Lock()
				defer s.gate.Unlock()
				if written := s.hints.written; h.Out != written || h.In < last.In || h.In >= s.ring.Next() {
					t.Errorf("%+v behind frame %d, after %+v", h, written, last)
				}
				if h.Terminal != wire.Echo|wire.Canonical || h.Context != 7 {
					t.Errorf("got %+v", h)
				}
				last = h
			},
		})
		w.kept.Go(func() {
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range 100 {
				if n, frame, err := s.TryWrite([]byte("x")); n != 1 || frame != uint64(i+1) || err != nil {
					t.Errorf("key %d: %d bytes in frame %d, %v", i, n, frame, err)
				}
				s.Flush()
				time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
				if i == 50 {
					w.move(0)
				}
			}
			known := func() bool {
				s.gate.Lock()
				defer s.gate.Unlock()
				next, _ := s.endpoint.Next()
				return last.In == s.ring.Next()-1 && last.Out == next-1
			}
			for until := time.Now().Add(time.Minute); !known(); time.Sleep(10 * time.Millisecond) {
				s.AskHint()
				if time.Now().After(until) {
					t.Errorf("the last hint is %+v", last)
					break
				}
			}
			s.CloseWrite()
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
		if told < 50 {
			t.Errorf("%d hints for 100 keys", told)
		}
	})
}

// A session whose holder sends no hints works without.
func TestNoHints(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, false, func(w *world) {
		s := w.attach(Streams{Hinted: func(h wire.Hint) { t.Errorf("got %+v", h) }})
		s.AskHint()
		s.CloseWrite()
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
	})
}

// A hint that is asked for is told, although nothing has changed since the last: the predictor may have lost that.
func TestAskHintIsAnswered(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
		var told atomic.Int32
		s := w.attach(Streams{Hinted: func(wire.Hint) { told.Add(1) }})
		w.kept.Go(func() {
			s.Write([]byte("x"))
			time.Sleep(10 * time.Second)
			for range 3 {
				before := told.Load()
				s.AskHint()
				time.Sleep(time.Second)
				if told.Load() == before {
					t.Error("a hint was asked for, and none was told")
				}
			}
			s.CloseWrite()
		})
		s.Run(context.Background())
	})
}

// AskHint asks at most twice in a round trip.
func TestAskHintIsLimited(t *testing.T) {
	inWorld(t, netem.Config{Delay: 200 * time.Millisecond}, true, func(w *world) {
		s := w.attach(Streams{Hinted: func(wire.Hint) {}})
		w.kept.Go(func() {
			s.Write([]byte("x"))
			time.Sleep(2 * time.Second)
			asked := make(map[time.Time]bool)
			for range 1000 {
				s.AskHint()
				asked[s.askedAt] = true
				time.Sleep(time.Millisecond)
			}
			if n := len(asked); n < 4 || n > 6 {
				t.Errorf("asked %d times in a second", n)
			}
			s.CloseWrite()
		})
		s.Run(context.Background())
	})
}
