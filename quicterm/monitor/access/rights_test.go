//go:build linux || darwin

package access

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// A judge answers checks of rights.
type judge struct {
	err   atomic.Pointer[error]
	looks atomic.Int32
	slow  time.Duration
}

func (j *judge) says(err error) { j.err.Store(&err) }

func (j *judge) look(ctx context.Context, _ Right) error {
	j.looks.Add(1)
	select {
	case <-time.After(j.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := j.err.Load(); err != nil {
		return *err
	}
	return nil
}

var errGone = &privsep.Withdrawn{Reason: "the key is not there any more"}

// An account that is not found counts as withdrawn after a while: the name service may not
// reach its directory.
func TestAccountMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(judge)
		r := NewRights(j.look)
		check := func() error { return r.Check(t.Context(), Right{Admission: Admission{Account: "ann"}}) }
		j.says(errMissing)
		for start := time.Now(); time.Since(start) < missingTime; time.Sleep(time.Minute) {
			if err := check(); !errors.Is(err, errMissing) || IsWithdrawn(err) {
				t.Fatalf("after %v: %v", time.Since(start), err)
			}
		}
		if err := check(); !IsWithdrawn(err) {
			t.Errorf("after %v: %v", missingTime, err)
		}
		time.Sleep(privsep.RightTime)
		j.says(nil)
		if err := check(); err != nil {
			t.Errorf("found again: %v", err)
		}
		time.Sleep(privsep.RightTime)
		j.says(errMissing)
		if err := check(); IsWithdrawn(err) {
			t.Errorf("missing anew: %v", err)
		}
	})
}

// What was found withdrawn from one address is checked before the client is let in from another
// one: who has lost access gets no moment of it at each new address.
func TestWithdrawnFromAllAddresses(t *testing.T) {
	j := new(judge)
	r := NewRights(j.look)
	at := func(account, from string) Right {
		return Right{Admission: Admission{Account: account}, From: netip.MustParseAddr(from)}
	}
	j.says(errGone)
	if err := r.Check(t.Context(), at("ann", "10.0.0.1")); !IsWithdrawn(err) {
		t.Fatal(err)
	}
	if err := r.Refused(t.Context(), at("ann", "10.0.0.2")); !IsWithdrawn(err) {
		t.Errorf("from another address: %v", err)
	}
	looks := j.looks.Load()
	if err := r.Refused(t.Context(), at("bob", "10.0.0.2")); err != nil || j.looks.Load() != looks {
		t.Errorf("another account: %v after %d checks", err, j.looks.Load()-looks)
	}
}

// A check that panics keeps none that follows it from a result.
func TestCheckPanics(t *testing.T) {
	panics := true
	r := NewRights(func(context.Context, Right) error {
		if panics {
			panic("in a check")
		}
		return nil
	})
	func() {
		defer func() { recover() }()
		r.Check(t.Context(), Right{})
	}()
	panics = false
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Check(ctx, Right{}); err != nil {
		t.Error(err)
	}
}

// A client keeps its access if it is allowed more than when it came in, and loses it if it is
// allowed less.
func TestLess(t *testing.T) {
	for _, test := range []struct {
		why  string
		by   Admission
		now  auth.Permissions
		want bool
	}{
		{"the same", Admission{Scope: "k", NoPTY: true}, auth.Permissions{Command: "k", NoPTY: true}, false},
		{"a command", Admission{}, auth.Permissions{Command: "k"}, true},
		{"no command any more", Admission{Scope: "k"}, auth.Permissions{}, false},
		{"no terminal", Admission{}, auth.Permissions{NoPTY: true}, true},
		{"a terminal again", Admission{NoPTY: true}, auth.Permissions{}, false},
	} {
		if got := test.by.less(&test.now); got != test.want {
			t.Errorf("%s: %v", test.why, got)
		}
	}
}

// Clients that come at once share a check, also if the first of them goes.
func TestChecksAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{slow: time.Second}
		r := NewRights(j.look)
		gone, leave := context.WithCancel(t.Context())
		go r.Check(gone, Right{})
		synctest.Wait()
		results := make(chan error)
		for range 20 {
			go func() { results <- r.Check(t.Context(), Right{}) }()
		}
		synctest.Wait()
		leave()
		for range 20 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if n := j.looks.Load(); n != 2 {
			t.Errorf("%d checks, want 2", n)
		}
	})
}
