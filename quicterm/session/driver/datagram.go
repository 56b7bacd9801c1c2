package driver

import (
	"fmt"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
)

// maxDatagram is how many bytes of frames a datagram holds, on carriers of any kind.
const maxDatagram = carrier.MaxDatagram - carrier.SealSize

func (d *Driver) readDatagrams(id session.CarrierID, c carrier.Carrier) error {
	for {
		b, err := c.ReceiveDatagram()
		if err != nil {
			return fmt.Errorf("datagrams: %w", err)
		}
		d.mu.Lock()
		err = d.receiveDatagram(id, b)
		d.received()
		d.Wake()
		d.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// receiveDatagram gives the frames of a datagram to the endpoint. If bytes are not a
// frame, it drops the rest of the datagram: the peer sends those frames again.
func (d *Driver) receiveDatagram(id session.CarrierID, b []byte) error {
	if len(b) == 0 {
		return nil // see Keepalive
	}
	now := time.Now()
	d.endpoint.DatagramReceived(id)
	next, _ := d.endpoint.Next()
	codec := buffer.ShortCodec{Near: next}
	for len(b) > 0 {
		f, n, err := codec.Parse(b)
		if err != nil {
			d.endpoint.CountCorrupted()
			return nil
		}
		if err := d.endpoint.Receive(now, id, session.DatagramLane, f); err != nil {
			return fmt.Errorf("datagram: %w", err)
		}
		b = b[n:]
	}
	return nil
}

func (d *Driver) writeDatagrams(id session.CarrierID, c carrier.Carrier, r *running, done <-chan struct{}) error {
	defer r.datagrams.timer.Stop()
	buf, short := make([]byte, 0, maxDatagram), make([]byte, 0, maxDatagram)
	for {
		padding := session.NoPadding
		d.mu.Lock()
		now := time.Now()
		b := d.endpoint.Datagram(now, id, buf)
		if b != nil {
			padding = d.endpoint.TakePadding(id)
		}
		switch {
		case b == nil && r.keepalive:
			b = buf[:0]
		case b == nil:
			d.sleep(now, &r.datagrams)
		default:
			codec := buffer.ShortCodec{Near: d.endpoint.Acked()}
			b = codec.AppendDatagram(short[:0], b)
		}
		r.keepalive = false
		d.mu.Unlock()
		if b != nil {
			if err := c.SendDatagram(padding.Fill(b)); err != nil {
				return fmt.Errorf("datagrams: %w", err)
			}
			continue
		}
		select {
		case <-r.datagrams.timer.C:
		case <-r.datagrams.wake:
		case <-done:
			return errEnded
		}
		d.mu.Lock()
		d.awake(&r.datagrams)
		d.mu.Unlock()
	}
}
