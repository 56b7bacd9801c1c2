package driver

import (
	"testing"
	"testing/synctest"
	"time"
)

// A formed carrier checks that no datagram of frames begins with a whole form.
type formed struct {
	*delayed
	t *testing.T
}

func (c *formed) SendDatagram(b []byte) error {
	if len(b) > 0 && b[0] < 0x80 {
		c.t.Errorf("sends a whole form: %x", b)
	}
	return c.delayed.SendDatagram(b)
}

// Small frames have the short form from the first one on.
func TestShortForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, holder := newEnd(), newEnd()
		x, y := newDelayed(time.Millisecond, 0, true)
		hangUp := runOver(client, holder, &formed{x, t}, &formed{y, t}, x.Close)
		typeKeys(client, holder, 10, time.Second)
		hangUp()
		for i, e := range []*end{client, holder} {
			if n := e.endpoint.Counters().Corrupted; n > 0 {
				t.Errorf("end %d counts %d as corrupted", i, n)
			}
		}
	})
}
