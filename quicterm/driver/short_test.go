package driver

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
