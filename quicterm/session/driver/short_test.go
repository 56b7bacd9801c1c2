package driver

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
)

// A formed carrier records whether its last datagram began with a short form.
type formed struct {
	*delayed
	short atomic.Bool
}

func (c *formed) SendDatagram(b []byte) error {
	c.short.Store(b[0] >= 0x80)
	return c.delayed.SendDatagram(b)
}

// Frames have the short form when the client has asked for it and the holder has answered, and
// never without that: an older end cannot read it.
func TestShortForms(t *testing.T) {
	for _, asks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client, holder := newEnd(), newEnd()
			if asks {
				client.driver.Compress(Off)
			}
			x, y := newDelayed(time.Millisecond, 0, true)
			clientSends, holderSends := &formed{delayed: x}, &formed{delayed: y}
			hangUp := runOver(client, holder, clientSends, holderSends, x.Close)
			defer hangUp()
			typeKeys(client, holder, 10, time.Second)
			for i, c := range []*formed{clientSends, holderSends} {
				if c.short.Load() != asks {
					t.Errorf("asked %v: end %d sends a short form: %v", asks, i, !asks)
				}
			}
			for i, e := range []*end{client, holder} {
				if n := e.endpoint.Counters().Corrupted; n > 0 {
					t.Errorf("asked %v: end %d counts %d as corrupted", asks, i, n)
				}
			}
		})
	}
}

// An older end reads short forms, and no groups.
func TestGroupsAreAskedFor(t *testing.T) {
	for payload, want := range map[string]bool{"": false, "\x00": false, "\x01": true, "\x02, and more": true} {
		e, r := newEnd(), new(running)
		frame := buffer.Frame{Type: session.ShortForms, Payload: []byte(payload)}
		if err := e.driver.receiveStream(0, r, []buffer.Frame{frame}); err != nil {
			t.Fatal(err)
		}
		if !r.negotiation.short || r.negotiation.groups != want {
			t.Errorf("ShortForms %q: short %v, groups %v", payload, r.negotiation.short, r.negotiation.groups)
		}
	}
}
