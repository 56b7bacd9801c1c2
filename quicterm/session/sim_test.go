package session

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A world is two endpoints and a network that delays, loses, duplicates and reorders
// what they send, and cuts and replaces their carriers. It has virtual time.
type world struct {
	t     testing.TB
	rng   *rand.Rand
	now   time.Time
	ends  [2]*end
	links []*link
	queue eventQueue
	order uint64 // of events

	delay, jitter time.Duration
	loss, double  float64 // of datagrams
	datagrams     bool
	sent          int // datagrams
	writes        int // to streams
	skips         bool
	snapshots     bool
	bulkCarriers  bool
	rate          int       // of streams, in bytes per second, 0 for no limit
	frozen        time.Time // until then nothing that is sent arrives
}

// An end is an endpoint, and a model of what it must deliver.
type end struct {
	endpoint *Endpoint
	ring     *buffer.Ring
	appended []buffer.Frame
	got      []Delivered // not consumed
	next     uint64      // the frame that must come next
	lost     []Gap

	undrawn uint64 // how many frames of ring its snapshots lack
	busy    bool   // it cannot make one now
	asked   int    // how often it was asked for one
}

// takeSnapshots makes both ends send snapshots with their gaps. It must be called first.
func (w *world) takeSnapshots() {
	w.snapshots = true
	for _, e := range w.ends {
		e.endpoint = NewEndpoint(Config{Log: e.ring, Acked: 1, Next: 1, Window: 300 << 10,
			Snapshot: e.snapshot, TakeSnapshots: true})
	}
}

func (e *end) snapshot() (next uint64, data []byte, ready bool) {
	e.asked++
	next = e.ring.Next() - min(e.undrawn, e.ring.Next()-1)
	return next, snapshotOf(next), !e.busy
}

// snapshotOf returns what stands for the frames before next.
func snapshotOf(next uint64) []byte {
	b := make([]byte, 1+next*7919%100_000)
	rng := rand.New(rand.NewPCG(next, 2))
	for i := 0; i < len(b); i += 16 {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// A link is a carrier: one CarrierID at each end.
type link struct {
	ids   [2]CarrierID
	up    [2]bool
	ready [2]time.Time // when the last stream bytes arrive: streams keep order
}

type event struct {
	at    time.Time
	order uint64
	run   func()
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].order < q[j].order
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	e := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return e
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{
		t:     t,
		rng:   rand.New(rand.NewPCG(seed, 1)),
		now:   time.Unix(0, 0),
		delay: 50 * time.Millisecond,
	}
	for i := range w.ends {
		ring := buffer.NewRing(0)
		w.ends[i] = &end{
			ring:     ring,
			next:     1,
			endpoint: NewEndpoint(Config{Log: ring, Acked: 1, Next: 1, Window: 300 << 10}),
		}
	}
	w.datagrams = true
	return w
}

func (w *world) at(d time.Duration, run func()) {
	w.order++
	heap.Push(&w.queue, event{w.now.Add(d), w.order, run})
}

// connect adds a carrier. As when a client resumes, one end may send at once.
func (w *world) connect() *link {
	l := &link{up: [2]bool{true, true}}
	size := 0
	if w.datagrams {
		size = 1100
	}
	for i, e := range w.ends {
		l.ids[i] = e.endpoint.Up(w.now, size, i == 0)
	}
	w.links = append(w.links, l)
	return l
}

// connectBulk adds a carrier for bulk data.
func (w *world) connectBulk() *link {
	l := w.connect()
	w.ends[0].endpoint.Bulk(l.ids[0])
	return l
}

// cut ends a carrier: what is under way on it never arrives. The ends learn of
// it at different times.
func (w *world) cut(l *link) {
	for i, e := range w.ends {
		if !l.up[i] {
			continue
		}
		l.up[i] = false
		w.at(time.Duration(w.rng.Int64N(int64(time.Second))), func() { e.endpoint.Down(w.now, l.ids[i]) })
	}
}

// keepOne cuts all carriers but one.
func (w *world) keepOne(i int) {
	for j, l := range w.links {
		if j != i {
			w.cut(l)
		}
	}
	w.links = w.links[i : i+1]
}

// randomBytes returns n bytes, faster than one by one.
func randomBytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24, 32), seed))).Read(b)
	return b
}

// append adds frames to the log of end i.
func (w *world) append(i int, size int) {
	e := w.ends[i]
	payload := randomBytes(w.rng.Uint64(), size)
	f := buffer.Frame{Type: output, Payload: payload}
	f.Seq = e.ring.Append(f.Type, payload)
	e.appended = append(e.appended, f)
	e.endpoint.Appended(w.now)
}

// flush sends all that the endpoints have to send now, and checks that SendTime says
// exactly when that is something.
func (w *world) flush() {
	for _, l := range w.links {
		for i := range w.ends {
			for w.send(l, i, DatagramLane) {
			}
			for w.send(l, i, StreamLane) {
			}
		}
	}
}

func (w *world) send(l *link, i int, lane Lane) bool {
	e, id := w.ends[i].endpoint, l.ids[i]
	at := e.SendTime(w.now, id, lane)
	var b []byte
	if lane == DatagramLane {
		b = e.Datagram(w.now, id, nil)
	} else {
		b = e.Stream(w.now, id, 32<<10)
	}
	if asked := w.snapshots && lane == StreamLane; due(w.now, at) != (b != nil) &&
		!(asked && b == nil && !due(w.now, e.SendTime(w.now, id, lane))) { // there is no snapshot yet
		w.t.Fatalf("end %d, lane %d: %d bytes to send at %v, SendTime is %v", i, lane, len(b), w.now, at)
	}
	switch {
	case b == nil:
		return false
	case lane == DatagramLane:
		w.sendDatagram(l, i, b)
	default:
		w.sendStream(l, i, b)
	}
	return true
}

// lanes calls f for each lane of each carrier.
func (w *world) lanes(f func(e *Endpoint, id CarrierID, lane Lane)) {
	for _, l := range w.links {
		for i, e := range w.ends {
			f(e.endpoint, l.ids[i], StreamLane)
			f(e.endpoint, l.ids[i], DatagramLane)
		}
	}
}

func (w *world) sendDatagram(l *link, from int, b []byte) {
	if len(b) > 1100 {
		w.t.Fatalf("datagram of %d bytes", len(b))
	}
	if w.sent++; w.sent > 10_000_000 {
		w.t.Fatal("a storm of datagrams")
	}
	copies := 1
	if w.rng.Float64() < w.double {
		copies = 2
	}
	for range copies {
		if !l.up[from] || w.rng.Float64() < w.loss {
			continue
		}
		delay := w.delay
		if w.jitter > 0 {
			delay += time.Duration(w.rng.Int64N(int64(w.jitter)))
		}
		w.at(max(delay, w.frozen.Sub(w.now)), func() {
			if l.up[1-from] {
				w.receive(l, 1-from, DatagramLane, b)
			}
		})
	}
}

func (w *world) sendStream(l *link, from int, b []byte) {
	w.writes++
	delay := w.delay
	if w.jitter > 0 {
		delay += time.Duration(w.rng.Int64N(int64(w.jitter)))
	}
	if w.rng.Float64() < w.loss {
		delay += 4 * w.delay // lost, and sent again
	}
	at := w.now.Add(max(delay, w.frozen.Sub(w.now)))
	if at.Before(l.ready[from]) {
		at = l.ready[from]
	}
	if w.rate > 0 {
		at = at.Add(time.Duration(len(b)) * time.Second / time.Duration(w.rate))
	}
	l.ready[from] = at
	w.at(at.Sub(w.now), func() {
		if l.up[1-from] {
			w.receive(l, 1-from, StreamLane, b)
		}
	})
}

func (w *world) receive(l *link, to int, lane Lane, b []byte) {
	if lane == DatagramLane {
		w.ends[to].endpoint.DatagramReceived(l.ids[to])
	}
	for len(b) > 0 {
		f, n, err := buffer.Parse(b)
		if err != nil {
			w.t.Fatalf("sent what cannot be parsed: %v", err)
		}
		f.Payload = bytes.Clone(f.Payload)
		if err := w.ends[to].endpoint.Receive(w.now, l.ids[to], lane, f); err != nil {
			w.t.Fatalf("end %d: frame %d of type %#x: %v", to, f.Seq, f.Type, err)
		}
		b = b[n:]
	}
	e := w.ends[to]
	e.got = append(e.got, e.endpoint.Take(math.MaxInt)...)
	w.ends[to].ring.Release(e.endpoint.Consumed())
	if held := e.endpoint.held; held > e.endpoint.windowSize {
		w.t.Fatalf("end %d holds %d bytes", to, held)
	}
}

// consume deals with the first n frames that end i got, as a slow program
// would: it compares them with what the other end appended.
func (w *world) consume(i, n int) {
	e, other := w.ends[i], w.ends[1-i]
	n = min(n, len(e.got))
	for _, d := range e.got[:n] {
		if d.Gap == nil {
			if want := other.appended[e.next-1]; d.Seq != want.Seq || d.Type != want.Type || !bytes.Equal(d.Payload, want.Payload) {
				w.t.Fatalf("end %d got frame %d, want %d, or its bytes differ", i, d.Seq, e.next)
			}
			e.next++
			continue
		}
		var want uint64
		for _, f := range other.appended[d.Gap.From-1 : d.Gap.To] {
			want += uint64(len(f.Payload))
		}
		if d.Gap.From != e.next || d.Gap.Bytes != want {
			w.t.Fatalf("end %d got gap %+v at frame %d, really %d bytes", i, *d.Gap, e.next, want)
		}
		if w.snapshots && !bytes.Equal(d.Gap.Snapshot, snapshotOf(d.After())) {
			w.t.Fatalf("end %d got a snapshot of %d bytes in place of the frames before %d", i, len(d.Gap.Snapshot), d.After())
		}
		e.lost = append(e.lost, *d.Gap)
		e.next = d.Gap.To + 1
	}
	e.endpoint.Consume(w.now, e.got[:n]...)
	e.got = e.got[n:]
}

// step runs the network and the timers up to the next event, at most to until. It checks
// that no lane has something to send earlier than SendTime said, as a lane sleeps until
// then.
func (w *world) step(until time.Time) {
	w.flush()
	next := until
	var planned []time.Time
	w.lanes(func(e *Endpoint, id CarrierID, lane Lane) {
		at := e.SendTime(w.now, id, lane)
		planned = append(planned, at)
		next = earlier(next, at)
	})
	if len(w.queue) > 0 && w.queue[0].at.Before(next) {
		next = w.queue[0].at
	}
	if next.Before(w.now) {
		w.t.Fatalf("a lane should have sent %v ago", w.now.Sub(next))
	}
	w.now = next
	w.lanes(func(e *Endpoint, id CarrierID, lane Lane) {
		if at := e.SendTime(w.now, id, lane); due(w.now, at) && !due(w.now, planned[0]) {
			w.t.Fatalf("lane %d of carrier %d sleeps until %v with something to send at %v", lane, id, planned[0], at)
		}
		planned = planned[1:]
	})
	for len(w.queue) > 0 && !w.queue[0].at.After(w.now) {
		heap.Pop(&w.queue).(event).run()
	}
	w.flush()
}

func (w *world) run(d time.Duration) {
	for until := w.now.Add(d); w.now.Before(until); {
		w.step(until)
	}
}

// inFlight returns how many bytes are on their way on streams.
func (w *world) inFlight() (bytes int) {
	for _, l := range w.links {
		for _, at := range l.ready {
			bytes += int(float64(w.rate) * max(at.Sub(w.now), 0).Seconds())
		}
	}
	return bytes
}

// settle runs until both ends have dealt with all that the other has sent and
// know that of each other.
func (w *world) settle(within time.Duration) {
	w.t.Helper()
	w.await(within, "settled", w.settled)
}

// await runs until both ends are as they should be. They consume all that they get.
func (w *world) await(within time.Duration, what string, done func() bool) {
	w.t.Helper()
	until := w.now.Add(within)
	for !done() {
		if !w.now.Before(until) {
			for i, e := range w.ends {
				w.t.Errorf("end %d: sent %d, of which acked %d, consumed %d; next %d",
					i, e.ring.Next()-1, e.endpoint.Acked()-1, e.endpoint.Consumed()-1, e.next)
			}
			w.t.Fatalf("not %s after %v", what, within)
		}
		for i, e := range w.ends {
			w.consume(i, len(e.got))
		}
		w.step(until)
	}
}

// delivered reports whether both ends have consumed all that the other has sent.
func (w *world) delivered() bool {
	for i, e := range w.ends {
		if w.ends[1-i].next != e.ring.Next() {
			return false
		}
	}
	return true
}

func (w *world) settled() bool {
	for i, e := range w.ends {
		if e.endpoint.Consumed() < e.ring.Next() || w.ends[1-i].next != e.ring.Next() || !e.endpoint.UnackedSince().IsZero() {
			return false
		}
	}
	return true
}

// chaos does steps random things, then lets one carrier work and checks that
// everything arrives, or is known to be lost exactly.
func (w *world) chaos(steps int) {
	for range steps {
		switch w.rng.IntN(20) {
		case 0, 1, 2, 3, 4:
			w.append(w.rng.IntN(2), w.rng.IntN(30)) // keys and their echo
		case 5:
			w.append(w.rng.IntN(2), w.rng.IntN(4096))
		case 6:
			if w.rng.IntN(10) == 0 {
				for range w.rng.IntN(20) {
					w.append(w.rng.IntN(2), w.rng.IntN(buffer.MaxPayload))
				}
			}
		case 7, 8, 9, 10:
			i := w.rng.IntN(2)
			w.consume(i, w.rng.IntN(len(w.ends[i].got)+1))
		case 11:
			if len(w.links) < 4 {
				if w.bulkCarriers && w.rng.IntN(2) == 0 {
					w.connectBulk()
				} else {
					w.connect()
				}
			}
		case 12:
			if n := len(w.links); n > 0 && w.rng.IntN(3) == 0 {
				i := w.rng.IntN(n)
				w.cut(w.links[i])
				w.links = append(w.links[:i:i], w.links[i+1:]...)
			}
		case 13:
			w.loss = float64(w.rng.IntN(100)) / 100
			w.double = float64(w.rng.IntN(50)) / 100
			w.jitter = time.Duration(w.rng.IntN(100)) * time.Millisecond
		case 14:
			w.run(time.Duration(w.rng.Int64N(int64(3 * time.Second))))
		case 15:
			if w.skips {
				w.ends[w.rng.IntN(2)].endpoint.Skip(uint64(w.rng.IntN(2)) * 1024)
			}
			if w.snapshots {
				e := w.ends[w.rng.IntN(2)]
				e.busy, e.undrawn = w.rng.IntN(2) == 0, uint64(w.rng.IntN(2)*w.rng.IntN(300))
				e.endpoint.SnapshotReady()
			}
		case 16:
			if n := len(w.links); n > 0 {
				client, id := w.ends[0].endpoint, w.links[w.rng.IntN(n)].ids[0]
				switch w.rng.IntN(5) {
				case 0:
					client.StandBy(w.now, id)
				case 1:
					client.Activate(w.now, id)
				case 2:
					client.Ping(id)
				case 3:
					client.AskAck()
				case 4:
					client.Secret(w.rng.IntN(2) == 0)
				}
			}
		default:
			w.run(time.Duration(w.rng.Int64N(int64(50 * time.Millisecond))))
		}
	}
	for _, e := range w.ends {
		e.busy, e.undrawn = false, 0
		e.endpoint.SnapshotReady()
	}
	w.loss = 0.1
	if len(w.links) == 0 {
		w.connect()
	}
	if w.rng.IntN(2) == 0 {
		w.keepOne(w.rng.IntN(len(w.links)))
	}
	if w.bulkCarriers {
		w.connect() // those that are left may be for bulk data alone
	}
	for _, l := range w.links {
		w.ends[0].endpoint.Activate(w.now, l.ids[0])
	}
	w.settle(5 * time.Minute)
}

func (w *world) String() string {
	return fmt.Sprintf("%v: %+v %+v", w.now, w.ends[0].endpoint.Counters(), w.ends[1].endpoint.Counters())
}
