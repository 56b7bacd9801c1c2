package session

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// Config describes one end of an attachment.
type Config struct {
	// Log is what this end sends. Several peers may share one. Its owner
	// releases frames when no peer needs them (see [Peer.Consumed]), and calls
	// [Peer.Appended] on each peer after adding to it.
	Log *buffer.Ring
	// Acked is the first frame of Log that the other end does not have.
	Acked uint64
	// Next is the first frame of the other end's log to receive, and Offset
	// its offset there.
	Next, Offset uint64
	// Reorder is how many frames the window spans: an early frame is kept
	// if it is less than this many after the next one.
	Reorder int
	// Window is how many bytes of frames this end is ready to hold until they
	// have been consumed.
	Window int
	// Lazy has the acks of small things wait for something to ride on, as long as
	// nothing is lost: at the end where somebody types. Patient is for the
	// other end, which does not expect them earlier.
	Lazy, Patient bool
}

// A CarrierID names a carrier of a peer, for as long as the peer lives.
type CarrierID uint32

// A Lane is one of the two ways of a carrier.
type Lane int

// The lanes.
const (
	StreamLane Lane = iota
	DatagramLane
)

// A ProtocolError is something that the other end must not do. The carrier
// that brought it is to be closed; the session can go on over another.
type ProtocolError struct{ msg string }

func (e *ProtocolError) Error() string { return "protocol error: " + e.msg }

func protocolErrorf(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// A Delivered is a frame of the other end's log in its place or, with Lost
// set, word that frames will never come.
type Delivered struct {
	buffer.Frame
	Lost *Gap
}

// After returns the number of the frame that comes after d.
func (d Delivered) After() uint64 {
	if d.Lost != nil {
		return d.Lost.To + 1
	}
	return d.Seq + 1
}

// A Gap tells which frames of a log will never come, and how many bytes of
// payload they had.
type Gap struct {
	From, To uint64 // the first and the last of them
	Bytes    uint64
}

// Queue appends what was delivered to a queue of what was before it. It joins
// gaps that meet, so that however many come, the queue does not grow by them.
func Queue(queue []Delivered, more ...Delivered) []Delivered {
	if n := len(queue); n > 0 && len(more) > 0 && queue[n-1].Lost != nil && more[0].Lost != nil {
		before, after := queue[n-1].Lost, more[0].Lost
		queue[n-1].Lost = &Gap{From: before.From, To: after.To, Bytes: before.Bytes + after.Bytes}
		more = more[1:]
	}
	return append(queue, more...)
}

// Counters count what happened to a peer since it was made.
type Counters struct {
	Duplicates  uint64 // frames received again, and dropped
	Reordered   uint64 // frames received before an earlier one
	Beyond      uint64 // datagram frames too early to be kept
	Gaps        uint64 // gaps in what was received
	LostFrames  uint64 // frames in those gaps
	LostBytes   uint64 // bytes of payload in those gaps
	Corrupted   uint64 // datagrams, and streams, with bytes that are no frame
	Resends     uint64 // datagrams that carried nothing new
	ResentBytes uint64 // bytes in those
}

// A Peer is one end of an attachment. It is not safe for concurrent use.
type Peer struct {
	log  *buffer.Ring
	sent uint64 // the first frame of it that was sent on no carrier

	// What the other end says of log.
	acked    uint64    // the first frame that it has not received
	consumed uint64    // the first frame that it has not dealt with
	limit    uint64    // where in log it can hold no more, as a position
	waiting  time.Time // since when it owes an ack, or zero
	skipped  uint64    // the first frame that is sent although it may not have those before

	// What is received.
	window   *buffer.Window
	offset   uint64 // of window.Next(), in the other end's log
	capacity int    // bytes that this end is ready to hold
	held     int    // bytes that it holds: delivered, not consumed
	done     uint64 // the first frame not consumed
	inbox    []Delivered
	notices  []Notice
	heard    CarrierID // that brought the last frame
	counters Counters

	carriers map[CarrierID]*carrier
	usual    struct { // what the last ack has told of its carrier's path
		rtt      rtt
		shortest time.Duration
		loss     float64
		credit   int
	}
	lastID   CarrierID
	lazy     bool
	patient  bool
	standing []buffer.Frame // the notices that each carrier is to bring
}

const (
	// initialGrant is how many bytes may be sent before the other end has
	// said what it is ready to hold. No end grants less.
	initialGrant = 256 << 10

	// maxNumber is the highest number of a frame, and the highest offset:
	// nobody gets there by sending, and sums stay clear of the end of uint64.
	maxNumber = 1 << 62

	// maxNotices is how many notices wait to be taken. More are dropped.
	maxNotices = 16
)

// NewPeer returns a peer without carriers.
func NewPeer(cfg Config) *Peer {
	return &Peer{
		log:      cfg.Log,
		acked:    cfg.Acked,
		consumed: cfg.Acked,
		limit:    position(cfg.Acked, cfg.Log.Offset(cfg.Acked)) + initialGrant,
		window:   buffer.NewWindow(cfg.Next, cfg.Reorder, cfg.Window),
		offset:   cfg.Offset,
		capacity: max(cfg.Window, initialGrant),
		done:     cfg.Next,
		lazy:     cfg.Lazy,
		patient:  cfg.Patient,
		carriers: make(map[CarrierID]*carrier),
	}
}

// Acked returns the first frame of the log that the other end has not received.
func (p *Peer) Acked() uint64 { return p.acked }

// Consumed returns the first frame of the log that the other end has not dealt
// with. The peer never needs those before it again.
func (p *Peer) Consumed() uint64 { return p.consumed }

// Waiting returns since when the other end has owed an ack for frames in the
// log without sending any that helps, or zero if it has them all.
func (p *Peer) Waiting() time.Time { return p.waiting }

// Next returns the first frame of the other end's log that has not been
// received, and its offset.
func (p *Peer) Next() (seq, offset uint64) { return p.window.Next(), p.offset }

// Counters returns what has been counted so far.
func (p *Peer) Counters() Counters { return p.counters }

// Corrupted counts bytes that were no frame.
func (p *Peer) Corrupted() { p.counters.Corrupted++ }

// Appended tells the peer that frames have been added to the log.
func (p *Peer) Appended(now time.Time) {
	if p.waiting.IsZero() && p.acked < p.log.Next() {
		p.waiting = now
	}
}

// Skip has none of the frames that are in the log now sent, but for those that
// are under way already, and the last ones if they have at most so many bytes of
// payload together. The other end is told that the others will never come.
func (p *Peer) Skip(last uint64) {
	end := p.log.Offset(p.log.Next())
	p.skipped = max(p.skipped, p.log.Find(end-min(last, end)))
}

// first returns the first frame that can still be sent.
func (p *Peer) first() uint64 { return max(p.log.First(), p.skipped) }

// Take returns what was delivered and not yet taken, in order.
func (p *Peer) Take() []Delivered {
	d := p.inbox
	p.inbox = nil
	return d
}

// TakeNotices returns the notices received and not yet taken.
func (p *Peer) TakeNotices() []Notice {
	n := p.notices
	p.notices = nil
	return n
}

// Consume tells the peer that what Take returned has been dealt with, in the
// order in which it was taken.
func (p *Peer) Consume(now time.Time, taken ...Delivered) {
	if len(taken) == 0 {
		return
	}
	for _, d := range taken {
		p.done = d.After()
		if d.Lost == nil {
			p.held -= frameBytes(d.Frame)
		}
	}
	if c := p.talking(); c != nil {
		c.scheduleAck(now.Add(p.ackWait(now, c)))
	}
}

// talking returns the carrier that something was heard on last or, if that has
// ended, the oldest that does not stand by.
func (p *Peer) talking() *carrier {
	if c := p.carriers[p.heard]; c != nil {
		return c
	}
	for _, id := range slices.Sorted(maps.Keys(p.carriers)) {
		if c := p.carriers[id]; !c.standBy {
			return c
		}
	}
	return nil
}

// Receive takes a frame that came over a carrier's lane. It keeps the frame's
// payload or a copy of it.
// After an error, the carrier is to be closed.
func (p *Peer) Receive(now time.Time, id CarrierID, lane Lane, f buffer.Frame) error {
	c := p.carriers[id]
	if c == nil {
		return nil // it was taken down meanwhile
	}
	if (f.Seq == 0) != (f.Type >= Unsequenced) {
		return protocolErrorf("frame of type %#x with sequence number %d", f.Type, f.Seq)
	}
	if f.Seq > maxNumber {
		return protocolErrorf("frame %d, beyond the end of all logs", f.Seq)
	}
	if f.Type != ping && !c.standBy {
		p.heard = id
	}
	c.heard = true
	c.load(f)
	switch f.Type {
	case ack:
		a, err := parseAck(f.Payload)
		if err != nil {
			return protocolErrorf("%v", err)
		}
		return p.handleAck(now, c, a)
	case gap:
		g, err := parseGap(f.Payload)
		if err != nil {
			return protocolErrorf("%v", err)
		}
		return p.handleGap(now, c, g)
	case ping:
		if len(f.Payload) > 0 && f.Payload[0] != 0 {
			c.scheduleAck(now)
		}
	case notice:
		n, err := parseNotice(f.Payload)
		if err != nil {
			return protocolErrorf("%v", err)
		}
		if len(p.notices) < maxNotices {
			p.notices = append(p.notices, n)
		}
	case Compression:
		if len(f.Payload) < 1 {
			return protocolErrorf("request for compression that does not say for which")
		}
	case Compressed:
		return protocolErrorf("compressed frame in a datagram, in another or without a request")
	}
	if f.Type < Unsequenced {
		return p.handleFrame(now, c, lane, f)
	}
	return nil
}

func (p *Peer) handleFrame(now time.Time, c *carrier, lane Lane, f buffer.Frame) error {
	next := p.window.Next()
	if f.Seq >= next && p.held+frameBytes(f) > p.capacity {
		return protocolErrorf("frame %d, beyond the %d bytes that were granted", f.Seq, p.capacity)
	}
	if f.Seq >= next {
		f = c.lighten(f)
	}
	verdict := p.window.Offer(f)
	if verdict != buffer.Beyond && f.Seq > c.highest {
		c.highest, c.highAt = f.Seq, now
	}
	c.urgent = c.urgent || lane == StreamLane || verdict == buffer.Held
	if verdict == buffer.Duplicate {
		p.oweAgain(now, c)
	} else {
		p.owe(now, c, frameBytes(f))
	}
	switch verdict {
	case buffer.Duplicate:
		p.counters.Duplicates++
	case buffer.Held:
		p.counters.Reordered++
	case buffer.Beyond:
		if lane == StreamLane {
			return protocolErrorf("frame %d on a stream, with %d missing", f.Seq, next)
		}
		p.counters.Beyond++
	case buffer.Accepted:
		c.unload(f)
		p.deliver()
	}
	return nil
}

// deliver moves what is in order from the window to the inbox.
func (p *Peer) deliver() {
	for {
		f, ok := p.window.Pop()
		if !ok {
			return
		}
		p.offset += uint64(len(f.Payload))
		p.held += frameBytes(f)
		p.inbox = append(p.inbox, Delivered{Frame: f})
	}
}

func (p *Peer) handleGap(now time.Time, c *carrier, g gapInfo) error {
	if g.next > maxNumber || g.offset > maxNumber {
		return protocolErrorf("gap to frame %d at offset %d, beyond the end of all logs", g.next, g.offset)
	}
	from := p.window.Next()
	if g.next <= from {
		return nil // it came by another way already
	}
	if g.offset < p.offset {
		return protocolErrorf("gap from offset %d back to %d", p.offset, g.offset)
	}
	lost := &Gap{From: from, To: g.next - 1, Bytes: g.offset - p.offset}
	p.counters.Gaps++
	p.counters.LostFrames += g.next - from
	p.counters.LostBytes += lost.Bytes
	p.inbox = Queue(p.inbox, Delivered{Lost: lost})
	p.window.SkipTo(g.next)
	p.offset = g.offset
	c.highest, c.highAt = max(c.highest, g.next-1), now
	c.urgent = true
	p.owe(now, c, 0)
	p.deliver()
	return nil
}

func (p *Peer) handleAck(now time.Time, c *carrier, a Ack) error {
	if a.Received > p.log.Next() || a.Highest >= p.log.Next() {
		return protocolErrorf("ack of frames up to %d and %d, with %d never sent", a.Received-1, a.Highest, p.log.Next())
	}
	news := a.Received > p.acked || a.Consumed > p.consumed
	if news {
		p.waiting = now
	}
	p.acked = max(p.acked, a.Received)
	p.consumed = max(p.consumed, a.Consumed)
	p.limit = max(p.limit, min(a.Limit, maxNumber))
	if p.acked == p.log.Next() {
		p.waiting = time.Time{}
	}
	p.handleCarrierAck(now, c, a, news)
	if delivered, known := p.delivered(c); known {
		c.credit.delivered(now, max(a.Highest, p.acked-1), delivered)
	} else {
		c.credit.forget()
	}
	return nil
}

// ackFor returns what is to be said to the other end on a carrier.
func (p *Peer) ackFor(now time.Time, c *carrier) Ack {
	return Ack{
		Received: p.window.Next(),
		Consumed: p.done,
		Limit:    position(p.window.Next(), p.offset) + uint64(p.capacity-p.held),
		Highest:  c.highest,

		Delay:     now.Sub(c.highAt),
		Datagrams: c.got,
		Backlog:   uint64(p.backlog(c)),
	}
}

// position returns where in a log the frame seq begins, in bytes of encoded
// frames, from its offset.
func position(seq, offset uint64) uint64 { return offset + buffer.Overhead*(seq-1) }

// room returns how many bytes of frames from the given one on may be sent before
// the other end holds all that it can, where so many of those before are left out.
func (p *Peer) room(from uint64, leftOut int) int {
	at, limit := position(from, p.log.Offset(from)), p.limit+uint64(leftOut)
	if at >= limit {
		return 0
	}
	return int(min(limit-at, math.MaxInt32))
}

// span returns how many bytes the frames of the log from one up to another take.
func (p *Peer) span(from, to uint64) int {
	if from >= to {
		return 0
	}
	return int(p.log.Offset(to)-p.log.Offset(from)) + buffer.Overhead*int(to-from)
}

func frameBytes(f buffer.Frame) int { return buffer.Overhead + len(f.Payload) }
