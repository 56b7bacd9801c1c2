package quota

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever members do: no key has more of them, or more of the amount, than it may; a member that leaves for another
// one
// is the one that was silent, or had not used what it had, for longest; and keys do not touch each other.
func TestSharesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const idle, keys = time.Second, 2
		most, amount := rapid.IntRange(1, 4).Draw(t, "members"), uint64(rapid.IntRange(1, 10).Draw(t, "amount"))
		s := NewShares[int](most, amount, idle)
		now := time.Minute
		var members [keys][]*Member[int]
		one := func(t *rapid.T) (key int, m *Member[int]) {
			key = rapid.IntRange(0, keys-1).Draw(t, "key")
			if len(members[key]) == 0 {
				t.Skip()
			}
			return key, rapid.SampledFrom(members[key]).Draw(t, "member")
		}
		drop := func(key int, m *Member[int]) {
			members[key] = slices.DeleteFunc(members[key], func(other *Member[int]) bool { return other == m })
		}
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) { now += time.Duration(rapid.IntRange(1, 2000).Draw(t, "ms")) * time.Millisecond },
			"join": func(t *rapid.T) {
				key, m := rapid.IntRange(0, keys-1).Draw(t, "key"), new(Member[int])
				left := s.Join(now, key, m)
				if full := len(members[key]) == most; full != (left != nil) {
					t.Fatalf("%d of %d members, and %v left", len(members[key]), most, left)
				}
				for _, other := range members[key] {
					if left != nil && other.heardAt.Load() < left.heardAt.Load() {
						t.Fatal("a member left that was not silent for longest")
					}
				}
				drop(key, left)
				members[key] = append(members[key], m)
			},
			"hear": func(t *rapid.T) { _, m := one(t); m.Heard(now) },
			"use":  func(t *rapid.T) { _, m := one(t); m.Used(now) },
			"leave": func(t *rapid.T) {
				key, m := one(t)
				s.Leave(m)
				s.Leave(m)
				drop(key, m)
				if may, left := s.Take(now, m, 0); may || left != nil {
					t.Fatal("a member takes something after it has left")
				}
			},
			"take": func(t *rapid.T) {
				key, m := one(t)
				more, before := uint64(rapid.IntRange(0, 5).Draw(t, "more")), s.Taken(key)
				may, left := s.Take(now, m, more)
				if before+more <= amount && (!may || left != nil) || !may && s.Taken(key)+more <= amount {
					t.Fatalf("%d more than %d of %d: %v, %v", more, before, amount, may, left)
				}
				if left != nil {
					if left == m || now-time.Duration(left.usedAt.Load()) <= idle {
						t.Fatal("a member left that needs what it has")
					}
					drop(key, left)
				}
			},
			"": func(t *rapid.T) {
				for key := range keys {
					sum := uint64(0)
					for _, m := range members[key] {
						sum += m.taken
					}
					if s.Len(key) != len(members[key]) || s.Len(key) > most || s.Taken(key) != sum || sum > amount {
						t.Fatalf("key %d: %d members with %d; want %d with %d", key, s.Len(key), s.Taken(key), len(members[key]), sum)
					}
				}
			},
		})
	})
}
