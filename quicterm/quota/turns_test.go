package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func (w *turn[K]) isReady() bool {
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

// A key that had no turn yet has the next one, however many of others wait.
func TestTurns(t *testing.T) {
	const all = 4
	ts := NewTurns[string](all, 2)
	var flood []*turn[string]
	for i := range 200 {
		flood = append(flood, ts.enter(fmt.Sprint("flood", i%5)))
	}
	end := func() {
		t.Helper()
		i := slices.IndexFunc(flood, (*turn[string]).isReady)
		if i < 0 {
			t.Fatal("no turn has come")
		}
		ts.leave(flood[i])
		flood = slices.Delete(flood, i, i+1)
	}
	for range 10 { // each key has had a turn
		end()
	}
	honest := ts.enter("honest")
	end()
	if !honest.isReady() {
		t.Error("a new key waits for others")
	}
	ts.leave(honest)
	if ts.running != all {
		t.Errorf("%d turns at a time, want %d", ts.running, all)
	}
	for _, w := range flood {
		ts.leave(w)
	}
	if ts.running != 0 || len(ts.waiting) != 0 || len(ts.byKey) != 0 {
		t.Errorf("after the end: %d run, %d wait, %v", ts.running, len(ts.waiting), ts.byKey)
	}
}

// The turns of one key are fewer at a time than those of all.
func TestTurnsOfOneKey(t *testing.T) {
	const all, each = 4, 2
	ts := NewTurns[string](all, each)
	for range all {
		ts.enter("slow")
	}
	if ts.running != each {
		t.Errorf("%d turns of a key, want %d", ts.running, each)
	}
	if !ts.enter("honest").isReady() {
		t.Error("another key waits")
	}
}

// Who gives up waiting takes no turn.
func TestTakeEnds(t *testing.T) {
	ts := NewTurns[int](0, 1)
	end, err := ts.Take(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := ts.Take(ctx, 1); !errors.Is(err, gone) {
		t.Errorf("%v, want %v", err, gone)
	}
	end()
	if end, err = ts.Take(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	end()
}

// Whatever comes and goes: no bound is passed, nothing waits that could have its turn, and the next turn is that of
// the key that had its last one longest ago.
func TestTurnsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, each := rapid.IntRange(0, 4).Draw(t, "all"), rapid.IntRange(0, 2).Draw(t, "each")
		ts := NewTurns[int](all, each)
		var open []*turn[int]
		ready := make(map[*turn[int]]bool)
		served := make(map[int]int)
		count := 0
		check := func() {
			byKey, running := make(map[int]int), 0
			for _, w := range open {
				if !ready[w] && w.isReady() { // more than one at once only without bounds
					count++
					ready[w], served[w.key] = true, count
				}
				if ready[w] {
					running++
					byKey[w.key]++
				}
			}
			free := func(key int) bool { return (all == 0 || running < all) && (each == 0 || byKey[key] < each) }
			for key, n := range byKey {
				if all > 0 && running > all || each > 0 && n > each {
					t.Fatalf("%d turns at a time, %d of key %d", running, n, key)
				}
			}
			for _, w := range open {
				if !ready[w] && free(w.key) {
					t.Fatalf("a turn of %v waits without need", w.key)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				open = append(open, ts.enter(rapid.IntRange(0, 4).Draw(t, "key")))
			},
			"leave": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "turn")
				w := open[i]
				open = slices.Delete(open, i, i+1)
				before := make(map[int]int)
				for key, at := range served {
					before[key] = at
				}
				ts.leave(w)
				if all == 1 && each == 0 && ready[w] && len(open) > 0 {
					next := open[slices.IndexFunc(open, (*turn[int]).isReady)]
					for _, other := range open {
						if before[other.key] < before[next.key] {
							t.Fatalf("key %d comes before key %d, which has waited longer", next.key, other.key)
						}
					}
				}
			},
			"": func(*rapid.T) { check() },
		})
	})
}
