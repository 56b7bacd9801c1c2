//go:build linux || darwin

package privsep

import (
	"context"
	"log/slog"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/machine/panics"
)

// A Host is what a network process gets from its monitor.
type Host struct {
	Calls  *Calls
	Logins Logins
	Log    *slog.Logger
	Panics *panics.Container // contains those of calls
}

// Logins are the logins of the clients of a network process.
type Logins interface {
	// Hold gives a login what ends the connection to its holder, which is called once, when the login ends. If Hold
	// returns an error, it was called.
	Hold(id LoginID, cut func()) error

	// Clear ends all logins.
	Clear()
}

// Restart calls once, which runs a network process until it has ended, again and again until ctx ends.
func (h *Host) Restart(ctx context.Context, once func(context.Context) error) error {
	pause := time.Duration(0)
	for {
		begun := time.Now()
		err := once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(begun) >= shortLife {
			pause = 0
		} else {
			pause = min(max(2*pause, leastPause), mostPause)
		}
		h.Log.Error("the network process has ended, and is started again", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// calls returns what a network process may call.
func (h *Host) calls() *Calls {
	calls := *h.Calls
	calls.Attach = func(ctx context.Context, r *Attach) (*Attached, error) {
		a, err := h.Calls.Attach(ctx, r)
		if err == nil {
			a.login = r.By.Login
		}
		return a, err
	}
	return &calls
}

// carrying is an answer with a carrier to a holder.
type carrying interface {
	// carried returns the carrier, or nil, and the login that uses it, or zeros.
	carried() (carrier.Carrier, LoginID)
}

func (a *Attached) carried() (carrier.Carrier, LoginID) { return a.Carrier, a.login }

func (a *Resumed) carried() (carrier.Carrier, LoginID) { return a.Carrier, a.Login.ID }

// An Exchange brings a request to the monitor, whose answer it returns. It returns an error if one of the two processes
// is gone.
type Exchange func(ctx context.Context, answer func(context.Context) *Reply) (*Reply, error)

// A Reply is the encoded answer of a monitor, and the carrier that it hands over, or nil.
type Reply struct {
	Body    []byte
	Carrier carrier.Carrier
}

// InMemory returns the calls of a network process that tests play in this process. Requests and answers are encoded and
// decoded as between two.
func (h *Host) InMemory(exchange Exchange) *Calls {
	calls := new(Calls)
	tableOf(calls).bind(func(ctx context.Context, k kind, request, answer any) error {
		payload, err := channelEncoding.Marshal(request)
		if err != nil {
			return err
		}
		r, err := exchange(ctx, func(ctx context.Context) *Reply { return h.replyTo(ctx, k, payload) })
		if err != nil {
			return err
		}
		var decoded reply
		if err := decode(r.Body, &decoded); err != nil {
			return err
		}
		switch answer := answer.(type) {
		case *Attached:
			answer.Carrier = r.Carrier
		case *Resumed:
			answer.Carrier = r.Carrier
		}
		return decoded.read(answer)
	})
	return calls
}

// replyTo answers a call in memory. A login that is handed a carrier has a leash on it.
func (h *Host) replyTo(ctx context.Context, k kind, payload []byte) *Reply {
	r := new(Reply)
	var answer any
	err := h.Panics.Contain(h.Log, func() (err error) {
		if answer, err = tableOf(h.calls()).serve(ctx, k, payload, nil); err != nil {
			return err
		}
		var login LoginID
		if a, ok := answer.(carrying); ok {
			r.Carrier, login = a.carried()
		}
		if r.Carrier == nil || login == (LoginID{}) {
			return nil
		}
		return h.Logins.Hold(login, func() { r.Carrier.Close() })
	})
	if r.Body, err = channelEncoding.Marshal(replyOf(answer, err)); err != nil {
		panic(err) // a reply has nothing that cannot be encoded
	}
	return r
}
