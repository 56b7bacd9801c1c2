//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The monitor checks a login that the network half should have checked and has not, and no other.
func TestOverdueLogins(t *testing.T) {
	onHost(t, func(h *host) {
		j := new(judge)
		h.server.rights.Look = j.look
		ctx, cancel := context.WithCancel(h.t.Context())
		done := make(chan struct{})
		go func() { defer close(done); h.server.recheck(ctx) }()
		defer func() { cancel(); <-done }()
		in := func(by *privsep.By) bool { _, err := h.server.List(h.t.Context(), by); return err == nil }
		looks := func(when string, want int32) {
			t.Helper()
			synctest.Wait()
			if n := j.looks.Swap(0); n != want {
				t.Errorf("%s: %d checks, want %d", when, n, want)
			}
		}
		asked, silent := h.by(), h.by()
		time.Sleep(privsep.RightTime)
		if err := h.server.Check(h.t.Context(), asked); err != nil {
			t.Fatal(err)
		}
		looks("by the network half", 1)
		j.says(errors.New("the home does not answer"))
		time.Sleep(2 * overdueTime)
		looks("of a silent login", 1)
		if !in(silent) || !in(asked) {
			t.Error("a login ends for what is not known")
		}
		j.says(errGone)
		time.Sleep(privsep.RetryInterval + overdueTime)
		looks("again", 1)
		if in(silent) || !in(asked) {
			t.Errorf("a login that has lost access: %v, another: %v", in(silent), in(asked))
		}
		time.Sleep(privsep.RecheckInterval)
		looks("after a day", 1)
		if in(asked) {
			t.Error("it is not checked after a day")
		}
	})
}

// A login gets one session.
func TestOneSessionOfLogin(t *testing.T) {
	onHost(t, func(h *host) {
		request := h.request(&wire.Attach{PTY: true})
		a, err := h.server.Attach(h.t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Carrier.Close()
		if _, err := h.server.Attach(h.t.Context(), request); !errors.Is(err, errNoLogin) {
			t.Errorf("a second session: %v", err)
		}
	})
}

// A judge answers checks of rights.
type judge struct {
	err   atomic.Pointer[error]
	looks atomic.Int32
	slow  time.Duration
}

func (j *judge) says(err error) { j.err.Store(&err) }

func (j *judge) look(ctx context.Context, _ access.Right) error {
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
