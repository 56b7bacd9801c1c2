package session

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// Config describes one end of an attachment.
type Config struct {
	// Log is what this end sends. Several endpoints may share one. Its owner releases frames that no endpoint needs
	// (see [Endpoint.Consumed]), and calls [Endpoint.Appended] on each endpoint after adding to it.
	Log *buffer.Ring
	// Acked is the first frame of Log that the peer does not have.
	Acked uint64
	// Next is the first frame of the peer's log to receive, and Offset its offset there.
	Next, Offset uint64
	// Window is the size of the flow-control window in bytes: how many bytes of
	// frames this end holds until they are consumed. At least 256 KiB are granted.
	Window int
	// DelayAcks delays acks of small frames by up to 600 ms while no loss is seen, so
	// that they share a packet with the next keys. It is for the end where a person
	// types. PeerDelaysAcks is for the other end, which expects such acks later.
	DelayAcks, PeerDelaysAcks bool
	// TellLimited tells the peer while the congestion window limits what is sent: for the end that
	// cannot make carriers.
	TellLimited bool
	// TellAge tells the peer which frames were old when they were sent.
	TellAge bool
	// Snapshot returns a snapshot that takes the place of all frames before next, for a peer that
	// cannot get them any more: at most MaxSnapshot bytes, a wire.Snapshot. It is called when a gap is due, and next
	// must be at least the first frame that can still be sent. If that is not ready, the stream
	// waits for Appended or SnapshotReady. Nil sends gaps without a snapshot.
	Snapshot func() (next uint64, snapshot []byte, ready bool)
	// TakeSnapshots makes this end accept snapshots. Else they are an error of the peer.
	TakeSnapshots bool
	// Note returns what the owner tells the peer's with each ack, at most MaxNote bytes, or nil. If it is set, an ack
	// stands before frames that go in a datagram, or to the end of the log on a stream.
	Note func(now time.Time) []byte
	// TakeNote takes what the peer's Note has returned, and the first frame of our log that the peer
	// had not received then. Acks come in any order.
	TakeNote func(received uint64, note []byte)
}

// A CarrierID names a carrier of an endpoint. It is never used again.
type CarrierID uint32

// A Lane is one of the two ways to send over a carrier.
type Lane int

// The lanes.
const (
	StreamLane Lane = iota
	DatagramLane
)

// A ProtocolError says what the peer did against the protocol. The carrier that
// brought it must be closed; the session can continue over another.
type ProtocolError struct{ msg string }

func (e *ProtocolError) Error() string { return "protocol error: " + e.msg }

func protocolErrorf(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// Counters count events of an endpoint since it was made.
type Counters struct {
	Duplicates  uint64 // frames received again, and dropped
	Reordered   uint64 // frames received before an earlier one
	Gaps        uint64 // gaps received
	GapFrames   uint64 // frames in those gaps
	GapBytes    uint64 // bytes of payload in those gaps
	Evicted     uint64 // gaps sent because frames had left the log before the peer had them
	Corrupted   uint64 // datagrams and streams with bytes that are not a frame
	Resends     uint64 // datagrams that carried nothing new
	ResentBytes uint64 // bytes in those
}

// An Endpoint is one end of an attachment. It is not safe for concurrent use.
type Endpoint struct {
	config      Config
	log         *buffer.Ring
	firstUnsent uint64         // the first frame of log that no carrier has sent
	skipTo      uint64         // frames before it are dropped, unless they were sent
	notices     []buffer.Frame // to send on each carrier, also on those to come
	ages        *ages          // of the frames of log, or nil

	awaitsSnapshot bool // Config.Snapshot was not ready

	// What the peer said about log.
	acked        uint64    // the first frame that it has not received
	consumed     uint64    // the first frame that it has not consumed
	windowEnd    uint64    // the end of its flow-control window, as a position in log
	unackedSince time.Time // since when it has owed an ack, or zero

	obscure obscure

	// The peer's log.
	reorder      *buffer.ReorderWindow
	offset       uint64      // of the frame to receive next
	windowSize   int         // bytes of frames that this end holds at most
	held         int         // bytes of frames that are delivered and not consumed
	toConsume    uint64      // the first frame that is not consumed
	pending      []Delivered // delivered and not taken, in order
	arrivedUntil int         // how many of pending Arrived has returned
	inNotices    []Notice    // received and not taken
	peerAged     uint64      // see Aged

	carriers  map[CarrierID]*carrier
	lastID    CarrierID
	lastHeard CarrierID // the carrier that brought the last frame
	lastPath  struct {  // what the last ack said about its carrier's path
		smoothed   time.Duration // round trip
		variation  time.Duration // of it
		minRTT     time.Duration
		loss       float64
		sendWindow int
	}

	limited       limited
	peerLimitedAt time.Time // when the peer has last said that its window limits it

	counters Counters
}

const (
	// maxNumber is the highest frame number and the highest offset. No log gets
	// there by sending, and sums stay clear of the end of uint64.
	maxNumber = 1 << 62

	// maxNotices is how many received notices wait to be taken. More are dropped.
	maxNotices = 16
)

// NewEndpoint returns an endpoint without carriers.
func NewEndpoint(cfg Config) *Endpoint {
	e := &Endpoint{
		config:     cfg,
		log:        cfg.Log,
		acked:      cfg.Acked,
		consumed:   cfg.Acked,
		windowEnd:  position(cfg.Acked, cfg.Log.Offset(cfg.Acked)) + initialWindow,
		reorder:    buffer.NewReorderWindow(cfg.Next, MaxAhead, cfg.Window),
		offset:     cfg.Offset,
		windowSize: max(cfg.Window, initialWindow),
		toConsume:  cfg.Next,
		carriers:   make(map[CarrierID]*carrier),
	}
	if cfg.TellAge {
		e.ages = new(ages)
	}
	return e
}

// Acked returns the first frame of the log that the peer has not received.
func (e *Endpoint) Acked() uint64 { return e.acked }

// Damaged reports whether memory has changed the first frame of the log that the peer has not received: the peer ends
// each carrier that brings it.
func (e *Endpoint) Damaged() bool {
	return e.acked >= e.First() && e.acked < e.log.Next() && !e.log.Intact(e.acked)
}

// GiveUp makes the peer get a gap, at least in place of the first frame that it has not received.
func (e *Endpoint) GiveUp() { e.skipTo = max(e.skipTo, e.acked+1) }

// Consumed returns the first frame of the log that the peer has not consumed. The
// endpoint never needs the frames before it again.
func (e *Endpoint) Consumed() uint64 { return e.consumed }

// UnackedSince returns since when the peer has owed an ack: since the first of the
// unacknowledged frames was appended, or since the last ack that acknowledged something,
// if that was later. It is zero if all frames are acknowledged.
func (e *Endpoint) UnackedSince() time.Time { return e.unackedSince }

// Unacked returns how many bytes of frames the peer will get and has not acknowledged.
func (e *Endpoint) Unacked() int { return e.log.Size(max(e.acked, e.skipTo)) }

// Next returns the first frame of the peer's log that has not been received, and its offset.
func (e *Endpoint) Next() (seq, offset uint64) { return e.reorder.Next(), e.offset }

// Counters returns the counts so far.
func (e *Endpoint) Counters() Counters { return e.counters }

// CountCorrupted counts a datagram or stream with bytes that are not a frame.
func (e *Endpoint) CountCorrupted() { e.counters.Corrupted++ }

// Appended reports that frames were added to the log.
func (e *Endpoint) Appended(now time.Time) {
	e.awaitsSnapshot = false
	e.obscure.appended(now)
	if e.ages != nil {
		e.ages.appended(now, e.log.Next())
	}
	if !e.unackedSince.IsZero() || e.acked == e.log.Next() {
		return
	}
	e.unackedSince = now
	if e.consumed == e.acked { // the peer owed nothing before
		for _, c := range e.carriers {
			c.restartProbes(now)
		}
	}
}

// Skip drops all unsent frames except the last ones, from the frame on that holds the
// first of the log's last bytes. The peer gets a gap in their place, with a snapshot if there
// is one. Before the first carrier, Skip makes the peer begin with that.
func (e *Endpoint) Skip(last uint64) {
	end := e.log.Offset(e.log.Next())
	from := end - min(last, end)
	seq := e.log.Find(from)
	if seq > e.log.First() && e.log.Offset(seq) > from {
		seq--
	}
	e.skipTo = max(e.skipTo, seq)
}

// First returns the first frame that can still be sent.
func (e *Endpoint) First() uint64 { return max(e.log.First(), e.skipTo) }

// Notify sends a notice on the streams of all carriers, also of those to come. The peer may get it more than once.
func (e *Endpoint) Notify(code byte, text string) {
	f := buffer.Frame{Type: notice, Payload: appendNotice(nil, code, text)}
	e.notices = append(e.notices, f)
	for _, c := range e.carriers {
		c.unsentNotices = buffer.AppendFrame(c.unsentNotices, f)
	}
}

// LastNotice is how many bytes at least are sent on a carrier with a notice of NotifyLast: less than a packet carries.
const LastNotice = 1000

// NotifyLast is Notify with so much behind it that an owner who counts bytes knows when a carrier has sent the notice: a
// ping that asks for nothing, and which no compression makes shorter.
func (e *Endpoint) NotifyLast(code byte, text string) {
	e.Notify(code, text)
	payload := make([]byte, 2*LastNotice)
	rand.Read(payload[1:])
	for _, c := range e.carriers {
		c.unsentNotices = buffer.AppendFrame(c.unsentNotices, buffer.Frame{Type: ping, Payload: payload})
	}
}

// maxUnsent is how many bytes of notices that are sent once may wait on a stream.
const maxUnsent = 16 << 10

// Announce sends a notice once, on the streams of the carriers that there are. A stream that
// does not take it in time goes without.
func (e *Endpoint) Announce(code byte, text string) {
	f := buffer.Frame{Type: notice, Payload: appendNotice(nil, code, text)}
	for _, c := range e.carriers {
		if len(c.unsentNotices) < maxUnsent {
			c.unsentNotices = buffer.AppendFrame(c.unsentNotices, f)
		}
	}
}

// TakeNotices returns the notices received and not yet taken.
func (e *Endpoint) TakeNotices() []Notice {
	n := e.inNotices
	e.inNotices = nil
	return n
}
