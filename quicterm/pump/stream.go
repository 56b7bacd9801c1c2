package pump

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
)

// maxBatch is how many frames are taken from a stream at once.
const maxBatch = 128

func (p *Pump) readStream(id session.CarrierID, c carrier.Carrier, r *running) error {
	in := incoming{frames: buffer.NewReader(c)}
	batch := make([]buffer.Frame, 0, maxBatch)
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		in.unpacks = r.takes.some()
		p.mu.Unlock()
		var ended error
		batch, ended = in.next(batch[:0])
		p.mu.Lock()
		err := p.receive(id, r, batch)
		if err == nil {
			err = ended
		}
		clear(batch) // what they hold is not to wait for the next
		if errors.Is(err, buffer.ErrChecksum) {
			p.peer.Corrupted()
		}
		p.received()
		p.Wake()
		if err != nil {
			return fmt.Errorf("stream: %w", err)
		}
	}
}

// receive takes frames that came on a stream.
func (p *Pump) receive(id session.CarrierID, r *running, frames []buffer.Frame) error {
	now := time.Now()
	for _, f := range frames {
		if err := p.peer.Receive(now, id, session.StreamLane, f); err != nil {
			return err
		}
		if f.Type == session.Compression {
			r.asked(Compression(f.Payload[0]))
		}
	}
	return nil
}

// asked takes note of what the other end takes.
func (r *running) asked(what Compression) {
	if what > On { // one of a later version
		what = Auto
	}
	if r.takes == asAsked {
		r.takes = what
	}
	if r.takes.some() {
		r.send = what
	}
}

// An incoming is the frames of a stream, out of those that are compressed.
type incoming struct {
	frames   *buffer.Reader
	unpacks  bool // compressed frames were asked for
	unpacker unpacker
	unpacked []byte // frames that were in one
}

// next waits for frames and appends those that are there to batch, as long as it
// has room. With an error, they are those before it.
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
		if err == nil && f.Type == session.Compressed && in.unpacks {
			in.unpacked, err = in.unpacker.unpack(f.Payload)
		} else if err == nil {
			batch = append(batch, f)
		}
		if err != nil || f.Type == session.Compression { // that changes what may come
			return batch, err
		}
	}
	return batch, nil
}

func (p *Pump) writeStream(id session.CarrierID, c carrier.Carrier, r *running, done <-chan struct{}) error {
	var out outgoing
	idle := time.NewTimer(0)
	defer idle.Stop()
	for {
		p.mu.Lock()
		now := time.Now()
		b := p.peer.Stream(now, id, writeSize)
		out.mode = r.send
		out.rtt, out.rate = p.peer.Path(id)
		said := r.say(b)
		p.mu.Unlock()
		if b = out.next(now, b); said != nil {
			b = slices.Concat(b, said)
		}
		if b == nil {
			var unused <-chan time.Time
			if out.packer.zstd != nil {
				idle.Reset(out.packer.used.Add(idleStream).Sub(now))
				unused = idle.C
			}
			select {
			case <-r.stream:
				continue
			case <-done:
				return errEnded
			case <-unused:
				b = out.packer.end()
			}
		}
		if _, err := c.Write(b); err != nil {
			return fmt.Errorf("stream: %w", err)
		}
	}
}

// say returns what to say of compression behind b, which is written next, once:
// with the first that is written, or in answer.
func (r *running) say(b []byte) []byte {
	asked := r.send != Off
	if r.told || !r.takes.some() || b == nil && !asked {
		return nil
	}
	r.told = true
	return buffer.AppendFrame(nil, buffer.Frame{Type: session.Compression, Payload: []byte{byte(r.takes)}})
}

// An outgoing is what goes on a stream.
type outgoing struct {
	mode   Compression
	rtt    time.Duration
	rate   float64
	policy policy
	packer packer
}

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
	return b
}
