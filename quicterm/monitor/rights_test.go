//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"net/netip"
	"strings"
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

func (j *judge) look(ctx context.Context, _ right) error {
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
		r := newRights(j.look)
		check := func() error { return r.check(t.Context(), right{admission: admission{account: "ann"}}) }
		j.says(errMissing)
		for start := time.Now(); time.Since(start) < missingTime; time.Sleep(time.Minute) {
			if err := check(); !errors.Is(err, errMissing) || withdrawn(err) {
				t.Fatalf("after %v: %v", time.Since(start), err)
			}
		}
		if err := check(); !withdrawn(err) {
			t.Errorf("after %v: %v", missingTime, err)
		}
		time.Sleep(privsep.RightTime)
		j.says(nil)
		if err := check(); err != nil {
			t.Errorf("found again: %v", err)
		}
		time.Sleep(privsep.RightTime)
		j.says(errMissing)
		if err := check(); withdrawn(err) {
			t.Errorf("missing anew: %v", err)
		}
	})
}

// What was found withdrawn from one address is checked before the client is let in from another
// one: who has lost access gets no moment of it at each new address.
func TestWithdrawnFromAllAddresses(t *testing.T) {
	j := new(judge)
	r := newRights(j.look)
	at := func(account, from string) right {
		return right{admission: admission{account: account}, from: netip.MustParseAddr(from)}
	}
	j.says(errGone)
	if err := r.check(t.Context(), at("ann", "10.0.0.1")); !withdrawn(err) {
		t.Fatal(err)
	}
	if err := r.refused(t.Context(), at("ann", "10.0.0.2")); !withdrawn(err) {
		t.Errorf("from another address: %v", err)
	}
	looks := j.looks.Load()
	if err := r.refused(t.Context(), at("bob", "10.0.0.2")); err != nil || j.looks.Load() != looks {
		t.Errorf("another account: %v after %d checks", err, j.looks.Load()-looks)
	}
}

// A check that panics keeps none that follows it from a result.
func TestCheckPanics(t *testing.T) {
	panics := true
	r := newRights(func(context.Context, right) error {
		if panics {
			panic("in a check")
		}
		return nil
	})
	func() {
		defer func() { recover() }()
		r.check(t.Context(), right{})
	}()
	panics = false
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.check(ctx, right{}); err != nil {
		t.Error(err)
	}
}

// A client keeps its access if it is allowed more than when it came in, and loses it if it is
// allowed less.
func TestLess(t *testing.T) {
	for _, test := range []struct {
		why  string
		by   admission
		now  auth.Permissions
		want bool
	}{
		{"the same", admission{scope: "k", noPTY: true}, auth.Permissions{Command: "k", NoPTY: true}, false},
		{"a command", admission{}, auth.Permissions{Command: "k"}, true},
		{"no command any more", admission{scope: "k"}, auth.Permissions{}, false},
		{"no terminal", admission{}, auth.Permissions{NoPTY: true}, true},
		{"a terminal again", admission{noPTY: true}, auth.Permissions{}, false},
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
		r := newRights(j.look)
		gone, leave := context.WithCancel(t.Context())
		go r.check(gone, right{})
		synctest.Wait()
		results := make(chan error)
		for range 20 {
			go func() { results <- r.check(t.Context(), right{}) }()
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
		for i := range 2 * maxRights {
			r.check(t.Context(), right{admission: admission{account: strings.Repeat("a", i)}})
		}
		if n := len(r.results); n > maxRights {
			t.Errorf("%d results are kept", n)
		}
	})
}
