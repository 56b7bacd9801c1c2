//go:build linux || darwin

package access

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
)

// Withdrawals are of an admission, or of an account, at one address; they count at all addresses
// until the right is one again at the same one. So many are kept.
func TestWithdrawals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "withdrawn")
	log := slog.New(slog.DiscardHandler)
	w := loadWithdrawals(file, log)
	at := func(uid uint32, key string, host int) Right {
		return Right{Admission: Admission{UID: uid, Key: key}, From: netip.AddrFrom4([4]byte{10, 0, byte(host >> 8), byte(host)})}
	}
	check := func(when string, r Right, want bool) {
		t.Helper()
		for _, w := range []*withdrawals{w, loadWithdrawals(file, log)} {
			if w.has(r) != want {
				t.Errorf("%s: account %d, key %s: %v", when, r.UID, r.Key, !want)
			}
		}
	}
	w.add(at(1, "a", 1), false)
	w.add(at(2, "a", 1), true)
	for range 2 {
		check("after a withdrawal", at(1, "a", 2), true)
		check("of another key", at(1, "b", 1), false)
		check("of the account", at(2, "b", 2), true)
		check("of another account", at(3, "a", 1), false)
		w.remove(at(1, "a", 2)) // it was none at another address
		w.remove(at(2, "a", 2))
	}
	w.remove(at(1, "a", 1))
	w.remove(at(2, "b", 1))
	check("again", at(1, "a", 1), false)
	check("the account again", at(2, "a", 1), false)

	w.add(at(1, "a", 1), false)
	for i := range 2 * maxAccountWithdrawals {
		w.add(at(2, fmt.Sprint(i), 1), false)
	}
	check("beside an account with many", at(1, "a", 1), true)
	check("the oldest of many", at(2, "0", 1), false)
	check("the latest of many", at(2, fmt.Sprint(2*maxAccountWithdrawals-1), 1), true)
	if len(w.kept) != 1+maxAccountWithdrawals {
		t.Errorf("%d are kept", len(w.kept))
	}
	w.file = ""
	for i := range uint32(maxWithdrawals) {
		w.add(at(10+i, "a", 1), true)
	}
	if len(w.kept) != maxWithdrawals {
		t.Errorf("%d are kept of all accounts", len(w.kept))
	}
}

// A result that is forgotten for others leaves the withdrawal.
func TestWithdrawnIsKept(t *testing.T) {
	j := new(judge)
	r := NewRights(j.look)
	j.says(errGone)
	lost := Right{Admission: Admission{UID: 1}}
	if err := r.Check(t.Context(), lost); !errors.Is(err, errGone) {
		t.Fatal(err)
	}
	j.says(nil)
	for uid := range uint32(10_000) { // more than are kept
		r.Check(t.Context(), Right{Admission: Admission{UID: 2 + uid}})
	}
	j.says(errGone)
	if err := r.Refused(t.Context(), lost); !IsWithdrawn(err) {
		t.Errorf("let in: %v", err)
	}
}
