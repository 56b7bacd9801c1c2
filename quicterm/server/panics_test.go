//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A clumsy has holders, and code that panics at some point of a connection.
type clumsy struct {
	processes.Holders
	ask, carry, lane bool
}

func (c *clumsy) Ask(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message,
) (wire.Message, error) {
	if c.ask {
		panic("in a goroutine that asks a holder")
	}
	return c.Holders.Ask(ctx, uid, id, open, m)
}

func (c *clumsy) Carry(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message, datagrams bool,
) (wire.Message, carrier.Carrier, error) {
	if c.carry {
		panic("in the connection's own goroutine")
	}
	answer, link, err := c.Holders.Carry(ctx, uid, id, open, m, datagrams)
	if err == nil && c.lane {
		link = clumsyLink{link}
	}
	return answer, link, err
}

type clumsyLink struct{ carrier.Carrier }

func (clumsyLink) Write([]byte) (int, error) { panic("in a lane of a relay") }

var _ processes.Holders = (*clumsy)(nil)

// A panic at any point of a connection ends that connection, and is logged with its stack.
// The others, and the daemon, go on.
func TestPanicEndsOneConnection(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		other, _, _ := h.dial(quic.DialEarly, false)
		lanes := h.resume(other, attached, 1, nil)
		h.want("before the panics", other, wire.TypeResumed)

		faulty := &clumsy{Holders: h.holders}
		h.setHolders(faulty)
		n := uint64(1)
		for _, test := range []struct {
			where    string
			faulty   clumsy
			messages func() []wire.Body
			answered bool
		}{
			{"in a goroutine that asks a holder", clumsy{ask: true}, func() []wire.Body { return h.login(&wire.List{}) }, true},
			{"in the connection's own goroutine", clumsy{carry: true},
				func() []wire.Body { return []wire.Body{resume(attached, n)} }, false},
			{"in a lane of a relay", clumsy{lane: true}, func() []wire.Body { return []wire.Body{resume(attached, n)} }, true},
		} {
			n++
			faulty.ask, faulty.carry, faulty.lane = test.faulty.ask, test.faulty.carry, test.faulty.lane
			c, _, _ := h.dial(quic.Dial, false)
			h.send(c, test.messages()...)
			if _, err := wire.Read(c, wire.MaxMessage); (err == nil) != test.answered {
				t.Errorf("%s: the answer: %v", test.where, err)
			}
			c.Write([]byte("x")) // for the lane
			if !faulty.ask {
				<-c.Context().Done()
			}
			c.Close()
			h.log.await(t, "error=\"panic: "+test.where, 1)
		}
		if n := strings.Count(h.log.String(), "stack="); n != 3 || !strings.Contains(h.log.String(), "panics_test.go") {
			t.Errorf("%d stacks in the log, want 3:\n%s", n, &h.log)
		}
		*faulty = clumsy{Holders: h.holders}
		if _, err := lanes.Write(typed(1, "after,")); err != nil {
			t.Error(err)
		}
		h.input.await(t, "after,", 1)
	})
}

// A panic in what QUIC and contexts call, outside the goroutines of connections, gives the
// cautious answer and ends nothing else.
func TestPanicOutsideConnections(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		other, _, _ := h.dial(quic.DialEarly, false)
		lanes := h.resume(other, attached, 1, nil)
		h.want("before the panics", other, wire.TypeResumed)
		ending, _, _ := h.dial(quic.Dial, false)
		synctest.Wait()
		unauthenticated := h.server.unauthenticated
		h.server.unauthenticated = nil

		ending.Close()
		h.log.await(t, "panic: ", 1)
		if !h.server.mustValidate(serverAddr) {
			t.Error("a client need not validate its address")
		}
		if ctx, err := h.server.admit(context.Background(), serverAddr); ctx != nil || !errors.As(err, new(*panics.Error)) {
			t.Errorf("a client is admitted: %v", err)
		}
		if h.server.grow(context.WithValue(context.Background(), guestKey{}, (*guest)(nil)), 1) {
			t.Error("a receive window grows")
		}
		if _, err := h.server.tls.GetCertificate(nil); !errors.As(err, new(*panics.Error)) {
			t.Errorf("a handshake goes on: %v", err)
		}
		if c, err := quic.Dial(context.Background(), h.listen(), serverAddr, h.tls); err == nil {
			c.Close()
			t.Error("a client is connected")
		}
		synctest.Wait()
		h.server.unauthenticated = unauthenticated
		if _, err := lanes.Write(typed(1, "after,")); err != nil {
			t.Error(err)
		}
		h.input.await(t, "after,", 1)
		comeBack(h, attached, 2, 2)
		h.input.await(t, "x", 1)
	})
}
