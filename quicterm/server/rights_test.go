//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
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

// judged calls f with a host whose clients a judge lets in.
func judged(t *testing.T, f func(h *host, j *judge, attached wire.Attached)) {
	onHost(t, func(h *host) {
		j := &judge{slow: 5 * time.Second}
		h.server.rights = newRights(j.look)
		f(h, j, h.attach())
	})
}

// comeBack resumes an attachment with number n, and sends a frame of input.
func comeBack(h *host, attached wire.Attached, n, seq uint64) *quic.Conn {
	h.t.Helper()
	c, _, _ := h.dial(quic.DialEarly, false)
	h.resume(c, attached, n, typed(seq, "x"))
	return c
}

var errGone = &withdrawnError{"the key is not there any more"}

// A client that resumes is served before what let it in is checked, and for as long as that
// is not known. It loses the connection when it is known to be withdrawn, and is refused
// when it comes back, until it may.
func TestWithdrawn(t *testing.T) {
	judged(t, func(h *host, j *judge, attached wire.Attached) {
		j.says(errors.New("the home does not answer"))
		c := comeBack(h, attached, 1, 1)
		h.want("before the check", c, wire.TypeResumed)
		h.input.await(t, "x", 1)
		h.log.await(t, "cannot check a client's access", 1)
		if c.Context().Err() != nil {
			t.Error("the connection was closed for what is not known")
		}
		c.Close()

		j.says(errGone)
		c = comeBack(h, attached, 2, 2)
		h.want("before the second check", c, wire.TypeResumed)
		<-c.Context().Done()

		looks := j.looks.Load()
		for n := range uint64(3) {
			c = comeBack(h, attached, 3+n, 3)
			m, err := wire.Read(c, wire.MaxMessage)
			var refusal wire.Error
			if err == nil {
				err = m.Decode(&refusal)
			}
			if err != nil || refusal.Code != wire.CodeWithdrawn || refusal.Text != errGone.reason {
				t.Errorf("refused with %+v, %v", refusal, err)
			}
			c.Close()
			time.Sleep(time.Second)
		}
		if n := j.looks.Load() - looks; n != 0 {
			t.Errorf("checked %d times within %v", n, rightTime)
		}

		time.Sleep(rightTime)
		j.says(nil)
		start := time.Now()
		c = comeBack(h, attached, 6, 3)
		h.want("when it may again", c, wire.TypeResumed)
		if d := time.Since(start); d < j.slow {
			t.Errorf("served after %v, before the check", d)
		}
		h.input.await(t, "x", 3)
		if got := h.input.String(); got != "xxx" {
			t.Errorf("the program read %q", got)
		}
	})
}

// A connection that stays is checked each day, and when its client has another address.
func TestCheckedDaily(t *testing.T) {
	judged(t, func(h *host, j *judge, attached wire.Attached) {
		c := comeBack(h, attached, 1, 1)
		h.want("resume", c, wire.TypeResumed)
		stay := func(d time.Duration) {
			for start := time.Now(); time.Since(start) < d; time.Sleep(45 * time.Second) {
				c.SendDatagram([]byte("alive"))
			}
			synctest.Wait()
		}
		stay(time.Hour)
		if n := j.looks.Load(); n != 1 {
			t.Errorf("checked %d times in the first hour", n)
		}
		j.says(errGone)
		stay(recheckInterval - 2*time.Hour)
		if c.Context().Err() != nil {
			t.Error("closed before a day has passed")
		}
		stay(2 * time.Hour)
		if c.Context().Err() == nil {
			t.Error("not closed after a day")
		}
	})
}

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
		time.Sleep(rightTime)
		j.says(nil)
		if err := check(); err != nil {
			t.Errorf("found again: %v", err)
		}
		time.Sleep(rightTime)
		j.says(errMissing)
		if err := check(); withdrawn(err) {
			t.Errorf("missing anew: %v", err)
		}
	})
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
