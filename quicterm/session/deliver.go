package session

import (
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A Delivered is a frame of the peer's log in its place or, if Gap is set, a range of frames that will never come.
type Delivered struct {
	buffer.Frame
	Gap *Gap
}

// After returns the number of the frame that comes after d.
func (d Delivered) After() uint64 {
	if d.Gap != nil {
		return d.Gap.To + 1
	}
	return d.Seq + 1
}

// A Gap is a range of frames of a log that will never come.
type Gap struct {
	From, To uint64 // the first and the last of them
	Bytes    uint64 // of payload in them

	// Snapshot is what a fresh receiver needs to be where it would be after them, or nil. It is
	// the owner's: the peer's [Config.Snapshot] has made it.
	Snapshot []byte
}

// Pending returns how many frames and gaps are delivered and not taken.
func (e *Endpoint) Pending() int { return len(e.pending) }

// Take removes and returns the next frames and gaps, in order: one, and more while together they take at most
// maxBytes, encoded. It returns nil if none is pending. The caller calls Consume when it has handled them.
func (e *Endpoint) Take(maxBytes int) []Delivered {
	n, size := 0, 0
	for n < len(e.pending) {
		size += frameBytes(e.pending[n].Frame)
		if n > 0 && size > maxBytes {
			break
		}
		n++
	}
	taken := e.pending[:n:n]
	e.pending, e.arrivedUntil = e.pending[n:], max(e.arrivedUntil-n, 0)
	if len(e.pending) == 0 {
		e.pending = nil
	}
	return taken
}

// Arrived returns the pending frames and gaps that it has not returned before, and
// leaves them to Take. The slice is valid until the next call of a method.
func (e *Endpoint) Arrived() []Delivered {
	arrived := e.pending[e.arrivedUntil:]
	e.arrivedUntil = len(e.pending)
	return arrived
}

// DropPending drops all pending frames and gaps, and returns how many frames those
// were. They are never consumed, so the flow-control window stays smaller by them.
func (e *Endpoint) DropPending() (frames int) {
	for _, d := range e.pending {
		if d.Gap == nil {
			frames++
		}
	}
	e.pending, e.arrivedUntil = nil, 0
	return frames
}

// Consume reports that frames and gaps that Take returned have been handled: input was given to the program, or
// output was written. They are consumed in the order in which they were taken.
func (e *Endpoint) Consume(now time.Time, taken ...Delivered) {
	if len(taken) == 0 {
		return
	}
	for _, d := range taken {
		e.toConsume = d.After()
		if d.Gap == nil {
			e.held -= frameBytes(d.Frame)
		}
	}
	if c := e.current(); c != nil {
		c.scheduleAck(now.Add(e.ackDelay(now, c)))
	}
}

// deliver moves the frames that are in order from the reorder window to the pending ones.
func (e *Endpoint) deliver() {
	for {
		f, ok := e.reorder.Pop()
		if !ok {
			return
		}
		e.offset += uint64(len(f.Payload))
		e.held += frameBytes(f)
		e.pending = append(e.pending, Delivered{Frame: f})
	}
}

// deliverGap adds a gap to the pending frames. It joins two gaps that meet, so that
// gaps alone never make the queue longer. One snapshot is pending at most, the last.
func (e *Endpoint) deliverGap(g Gap) {
	if n := len(e.pending); n > 0 && e.pending[n-1].Gap != nil {
		before := e.pending[n-1].Gap
		g.From, g.Bytes = before.From, before.Bytes+g.Bytes
		if g.Snapshot == nil {
			g.Snapshot = before.Snapshot
		}
		e.pending = e.pending[:n-1]
	}
	if g.Snapshot != nil {
		for i, d := range e.pending {
			if d.Gap != nil && d.Gap.Snapshot != nil {
				e.pending[i].Gap = &Gap{From: d.Gap.From, To: d.Gap.To, Bytes: d.Gap.Bytes}
			}
		}
	}
	e.pending = append(e.pending, Delivered{Gap: &g})
}
