//go:build linux || darwin

package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// foreign adds sessions of another account, whose holders answer nothing.
type foreign struct {
	*holdertest.Holders
	sessions int
	asked    chan struct{} // an element for each question
}

const foreignUID = 4_000_000_000

func (f *foreign) Accounts() []uint32 { return append(f.Holders.Accounts(), foreignUID) }

func (f *foreign) Sessions(uid uint32) []wire.SessionID {
	if uid != foreignUID {
		return f.Holders.Sessions(uid)
	}
	return make([]wire.SessionID, f.sessions)
}

func (f *foreign) Ask(ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message) (wire.Message, error) {
	if uid != foreignUID {
		return f.Holders.Ask(ctx, uid, id, open, m)
	}
	f.asked <- struct{}{}
	<-ctx.Done()
	return wire.Message{}, ctx.Err()
}

// With max_buffer_total, new sessions do not ask the holders of other accounts each time,
// and holders that do not answer delay a new session only for memoryTimeout.
func TestMemoryIsAskedSeldom(t *testing.T) {
	onHost(t, func(h *host) {
		others := &foreign{Holders: h.holders, sessions: 2 * maxAsks, asked: make(chan struct{}, 10_000)}
		h.settings.MaxBufferTotal = configs.Size{Bytes: 1 << 30}
		h.server.settings, h.server.holders = h.settings, others
		start := time.Now()
		h.attach()
		if d := time.Since(start); d < memoryTimeout || d > memoryTimeout+20*roundTrip {
			t.Errorf("the first session took %v, want %v", d, memoryTimeout)
		}
		first := len(others.asked)
		for range 20 {
			h.attach()
		}
		if d := time.Since(start); d > memoryAge {
			t.Fatalf("20 sessions took %v: the test is too slow to tell anything", d)
		}
		if n := len(others.asked); n != first {
			t.Errorf("20 more sessions ask %d holders of another account", n-first)
		}
		time.Sleep(memoryAge)
		h.attach()
		if n := len(others.asked); n == first {
			t.Error("the memory is never asked for again")
		}
	})
}

// A new session is refused when the others keep too much output.
func TestMemoryLimit(t *testing.T) {
	onHost(t, func(h *host) {
		h.server.settings.MaxBufferTotal = configs.Size{Bytes: 1}
		h.attach() // there is no output yet
		h.program.Print([]byte("output"))
		time.Sleep(memoryAge)
		c, _, _ := h.dial(quic.Dial, false)
		h.send(c, nil, h.login(&wire.Attach{PTY: true})...)
		var refusal wire.Error
		m, err := wire.Read(c, wire.MaxMessage)
		if err == nil {
			err = m.Decode(&refusal)
		}
		if err != nil || !strings.Contains(refusal.Text, "max_buffer_total is 1B") {
			t.Errorf("%v, %v; want a refusal", refusal.Text, err)
		}
	})
}
