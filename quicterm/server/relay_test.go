//go:build linux || darwin

package server

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A deaf has holders that neither read what a client sends nor close its carrier.
type deaf struct{ processes.Holders }

func (d deaf) Carry(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message, datagrams bool,
) (wire.Message, carrier.Carrier, error) {
	answer, link, err := d.Holders.Carry(ctx, uid, id, open, m, datagrams)
	if err == nil {
		link.Close()
		link, _ = carriertest.Pair()
	}
	return answer, link, err
}

// A relay ends with its client, also while the holder reads nothing.
func TestRelayEndsWithItsClient(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		h.setHolders(deaf{h.holders})
		c, _, _ := h.dial(quic.DialEarly, false)
		h.resume(c, attached, 1, make([]byte, 100))
		h.want("accepted by a deaf holder", c, wire.TypeResumed)
		c.Close()
		time.Sleep(2 * closeTimeout)
		synctest.Wait()
		if n := h.server.connections.Load(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// A stuck is a stream that brings data without end, and takes it until a write has more than
// smallBuffer, or is the third. That blocks until the end.
type stuck struct {
	writes *int
	large  *atomic.Int64
	end    chan struct{}
}

func (s stuck) Read(b []byte) (int, error) { return len(b), nil }

func (s stuck) Write(b []byte) (int, error) {
	if *s.writes++; *s.writes < 3 && len(b) == smallBuffer {
		return len(b), nil
	}
	if len(b) > smallBuffer {
		s.large.Add(1)
	}
	<-s.end
	return 0, io.ErrClosedPipe
}

// Relays whose receivers read nothing hold a bounded number of large buffers of an account, and
// give them back.
func TestLargeBuffersOfAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newAccounts(1)
		var large atomic.Int64
		end := make(chan struct{})
		var relays sync.WaitGroup
		for range 2 * maxLarge {
			relays.Go(func() {
				s := stuck{new(int), &large, end}
				copyStream(s, s, func() (func(), bool) { return account.large.Try(0) }, func(int) {})
			})
		}
		synctest.Wait()
		if n := large.Load(); n != maxLarge {
			t.Errorf("%d relays have large buffers, want %d", n, maxLarge)
		}
		close(end)
		relays.Wait()
		for n := range maxLarge {
			if _, ok := account.large.Try(0); !ok {
				t.Errorf("%d large buffers are not given back", maxLarge-n)
			}
		}
	})
}
