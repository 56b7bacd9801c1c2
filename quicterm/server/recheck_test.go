//go:build linux || darwin

package server

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A judge decides whether clients keep their access.
type judge struct {
	err   atomic.Pointer[error]
	looks atomic.Int32
	slow  time.Duration
}

func (j *judge) says(err error) { j.err.Store(&err) }

func (j *judge) look(ctx context.Context) error {
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
		h.stop()
		h.recheck = j.look
		h.serve()
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

var errGone = &privsep.Withdrawn{Reason: "the key is not there any more"}

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
			if err != nil || refusal.Code != wire.CodeWithdrawn || refusal.Text != errGone.Reason {
				t.Errorf("refused with %+v, %v", refusal, err)
			}
			c.Close()
			time.Sleep(time.Second)
		}
		if n := j.looks.Load() - looks; n != 3 {
			t.Errorf("checked %d times for 3 resumes", n)
		}

		j.says(nil) // at once: the file of the keys was only being written
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

// A client that has proven who it is cannot keep that for later: it can only send requests for a
// while, and what let it in is looked at again after its Attach.
func TestProofIsNotKept(t *testing.T) {
	judged(t, func(h *host, j *judge, _ wire.Attached) {
		silent, _, _ := h.dial(quic.Dial, false)
		h.send(silent, h.login(&wire.List{})...)
		h.want("list", silent, wire.TypeListing)
		busy, _, _ := h.dial(quic.Dial, false)
		h.send(busy, h.login(&wire.List{})...)
		slow, _, _ := h.dial(quic.Dial, false)
		login := h.login(&wire.Attach{PTY: true})
		h.send(slow, login[:2]...) // no request yet
		late, _, _ := h.dial(quic.Dial, false)
		h.send(late, h.login(&wire.List{})...)
		h.want("list", late, wire.TypeListing)
		start := time.Now()
		for ; time.Since(start) < wire.RequestsTime-time.Second; time.Sleep(time.Second) {
			h.want("list", busy, wire.TypeListing)
			h.send(busy, &wire.List{})
		}
		h.send(late, &wire.Attach{PTY: true})
		h.want("attach", late, wire.TypeAttached)
		j.says(errGone)
		time.Sleep(2*time.Second + closeTimeout)
		for _, c := range []*quic.Conn{silent, busy} {
			if c.Context().Err() == nil {
				t.Errorf("not closed %v after the proof", time.Since(start))
			}
		}
		h.send(slow, login[2])
		if m, err := wire.Read(slow, wire.MaxMessage); err == nil {
			t.Errorf("a late first request is answered with %d", m.Type)
		}
		if late.Context().Err() != nil {
			t.Error("an attached client has lost its connection before it was checked")
		}
		for start := time.Now(); late.Context().Err() == nil; time.Sleep(time.Second) {
			if time.Since(start) > privsep.AddressInterval {
				t.Fatal("not checked after an Attach")
			}
			late.SendDatagram([]byte("alive"))
		}
	})
}

// The server describes itself.
func TestDescribe(t *testing.T) {
	judged(t, func(h *host, _ *judge, _ wire.Attached) {
		c, _, _ := h.dial(quic.Dial, false)
		h.send(c, h.login(&wire.Describe{})...)
		var d wire.Description
		m, err := wire.Read(c, wire.MaxMessage)
		if err := errors.Join(err, m.Decode(&d)); err != nil {
			t.Fatal(err)
		}
		shown, err := auth.NewStatement(c.TLS(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if d.MaxSessions != 100 || !bytes.Equal(d.HostKey, shown.Host[:]) || d.Page != "" || d.Sessions != 1 || d.MaxMemory == 0 || d.Proof != "token" || d.Client == "" ||
			time.Since(time.UnixMilli(d.Time)).Abs() > time.Second {
			t.Errorf("got %+v", d)
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
		stay(privsep.RecheckInterval - 2*time.Hour)
		if c.Context().Err() != nil {
			t.Error("closed before a day has passed")
		}
		stay(2 * time.Hour)
		if c.Context().Err() == nil {
			t.Error("not closed after a day")
		}
	})
}

// A client that has lost access gets no moment of it after a restart of the daemon. When it has
// access again, it is let in at once as before.
func TestWithdrawnOverRestart(t *testing.T) {
	judged(t, func(h *host, j *judge, attached wire.Attached) {
		restart := func() {
			h.stop()
			h.serve()
		}
		restart()
		j.says(errGone)
		c := comeBack(h, attached, 1, 1)
		h.want("before the check", c, wire.TypeResumed)
		<-c.Context().Done()

		restart()
		c = comeBack(h, attached, 2, 2)
		h.want("after a restart", c, wire.TypeError)
		c.Close()

		restart()
		j.says(nil)
		c = comeBack(h, attached, 3, 2)
		h.want("when it may again", c, wire.TypeResumed)
		c.Close()

		restart()
		j.says(errGone)
		c = comeBack(h, attached, 4, 3)
		h.want("when the daemon knows nothing against it", c, wire.TypeResumed)
	})
}
