package driver

import (
	"errors"
	"fmt"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
)

const (
	// maxBatch is how many frames are taken from a stream at once.
	maxBatch = 128

	// writeSize is about how many bytes are written to a stream at once: enough to be
	// cheap, and so few that the next frames do not wait long.
	writeSize = 64 << 10

	// idleStream is how long a stream is idle before compression frees its memory.
	idleStream = 10 * time.Second
)

func (d *Driver) readStream(id session.CarrierID, c carrier.Carrier) error {
	in := incoming{frames: buffer.NewReader(c), accepts: d.compression != Off}
	batch := make([]buffer.Frame, 0, maxBatch)
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		d.mu.Unlock()
		var ended error
		batch, ended = in.next(batch[:0])
		d.mu.Lock()
		err := d.receiveStream(id, batch)
		if err == nil {
			err = ended
		}
		clear(batch) // do not keep payloads until the next batch
		if errors.Is(err, buffer.ErrChecksum) {
			d.endpoint.CountCorrupted()
		}
		if len(batch) > 0 { // not when the carrier ends before any frame
			d.received()
			d.Wake()
		}
		if err != nil {
			return fmt.Errorf("stream: %w", err)
		}
	}
}

// receiveStream gives frames that came on a stream to the endpoint.
func (d *Driver) receiveStream(id session.CarrierID, frames []buffer.Frame) error {
	now := time.Now()
	for _, f := range frames {
		if err := d.endpoint.Receive(now, id, session.StreamLane, f); err != nil {
			return err
		}
	}
	return nil
}

// An incoming reads the frames of a stream, and decompresses those that are compressed.
type incoming struct {
	frames   *buffer.Reader
	accepts  bool // compressed frames
	unpacker unpacker
	unpacked []byte // frames from a compressed one
}

// next waits for frames and appends those that are there to batch, up to its capacity.
// With an error, it returns the frames before it.
func (in *incoming) next(batch []buffer.Frame) ([]buffer.Frame, error) {
	for len(batch) < cap(batch) {
		if len(in.unpacked) > 0 {
			f, n, err := buffer.Parse(in.unpacked)
			if err != nil {
				return batch, fmt.Errorf("%w: %w", ErrCompressed, err)
			}
			batch = append(batch, f)
			in.unpacked = in.unpacked[n:]
			continue
		}
		in.unpacked = nil
		if len(batch) > 0 && !in.frames.Ready() {
			break
		}
		f, err := in.frames.Next()
		if err == nil && f.Type == session.Compressed && in.accepts {
			in.unpacked, err = in.unpacker.unpack(f.Payload)
		} else if err == nil {
			batch = append(batch, f)
		}
		if err != nil {
			return batch, err
		}
	}
	return batch, nil
}

func (d *Driver) writeStream(id session.CarrierID, c carrier.Carrier, r *running, done <-chan struct{}) error {
	out := outgoing{mode: d.compression}
	idle := time.NewTimer(idleStream)
	defer idle.Stop()
	defer r.stream.timer.Stop()
	for {
		d.mu.Lock()
		now := time.Now()
		b := d.endpoint.Stream(now, id, writeSize)
		padding := session.NoPadding
		if b != nil {
			padding = d.endpoint.TakePadding(id)
		}
		out.rtt, out.rate = d.endpoint.Path(id)
		if b == nil {
			d.sleep(now, &r.stream)
		}
		if len(d.running) > 1 {
			d.closeDead()
			d.Wake() // bulk carriers share what is to be sent
		} else {
			d.schedule(now, &r.datagrams) // an ack that waited there may have gone with b, or tells of a backlog
		}
		d.mu.Unlock()
		if b = padding.Fill(out.next(now, b)); b == nil {
			var unused <-chan time.Time
			if out.packer.zstd != nil {
				idle.Reset(out.packer.usedAt.Add(idleStream).Sub(now))
				unused = idle.C
			}
			select {
			case <-r.stream.timer.C:
			case <-r.stream.wake:
			case <-unused:
				b = out.packer.end()
			case <-done:
				return errEnded
			}
			d.mu.Lock()
			d.awake(&r.stream)
			d.mu.Unlock()
			if b == nil {
				continue
			}
		}
		if _, err := c.Write(b); err != nil {
			return fmt.Errorf("stream: %w", err)
		}
	}
}

// An outgoing makes what is sent on a stream shorter.
type outgoing struct {
	mode   Compression
	rtt    time.Duration
	rate   float64
	policy policy
	packer packer
	codec  buffer.ShortCodec
	buf    []byte
}

// maxShortened is the longest write whose frames get the short form: longer ones are few, and made of large frames.
const maxShortened = 256

// next returns what to write for b, which is whole frames: b, or fewer bytes.
func (o *outgoing) next(now time.Time, b []byte) []byte {
	n := len(b)
	if o.policy.compress(o.mode, n, o.rtt, o.rate) {
		if packed, ok := o.packer.pack(now, b); ok {
			b = packed
		}
		o.policy.tried(n, len(b))
	}
	o.policy.sent(n, len(b))
	if n > 0 && len(b) <= maxShortened {
		o.buf = o.codec.AppendStream(o.buf[:0], b)
		return o.buf
	}
	if n > 0 {
		o.codec = buffer.ShortCodec{} // the receiver has followed frames that this codec has not seen
	}
	return b
}
