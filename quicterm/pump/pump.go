// Package pump moves the frames of a [session.Peer] over its carriers: it is
// the goroutines, timers and buffers that the pure peer does without.
//
// What goes on a carrier's stream it may compress, if the other end takes that.
// One end asks: it says on the stream of each carrier that it takes compressed
// frames, and when it wants them. The other says the same in answer. From then on
// each end decides for each write, so whole frames of a log and frames that hold
// others, compressed, come in any order. A carrier begins with nothing to refer to,
// and keeps nothing for long when its stream is idle.
package pump

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
)

// writeSize is about how many bytes are written to a stream at once: enough to
// be cheap, and little enough that what is said next is not long in coming.
const writeSize = 64 << 10

// idleStream is how long nothing goes on a stream until what compression keeps of
// it is forgotten.
const idleStream = 10 * time.Second

// A Pump runs the carriers of one peer. The peer, and the log that it sends, are
// guarded by the mutex that the pump was made with: whoever else uses them
// holds it, and calls Wake after changing them.
type Pump struct {
	mu       sync.Locker
	peer     *session.Peer
	received func()
	wanted   Compression // for the carriers to come

	running map[session.CarrierID]*running // guarded by mu
}

// running is a carrier, and what wakes its goroutines.
type running struct {
	stream    chan struct{}
	datagrams chan struct{}

	// Guarded by the pump's mutex.
	takes Compression // what the other end is told that we take
	told  bool        // it was
	send  Compression // what it has asked for
}

// New returns a pump for a peer. It calls received, with the mutex held, each
// time after frames have been given to the peer.
func New(mu sync.Locker, peer *session.Peer, received func()) *Pump {
	return &Pump{mu: mu, peer: peer, received: received, wanted: asAsked, running: make(map[session.CarrierID]*running)}
}

// Compress says what is to be compressed on the carriers to come, in both
// directions. The other end is asked for it; without a call of Compress, it is
// as the other end asks. The mutex must be held.
func (p *Pump) Compress(what Compression) { p.wanted = what }

// Wake has the carriers look for something to send. The mutex must be held.
func (p *Pump) Wake() {
	for _, r := range p.running {
		wake(r.stream)
		wake(r.datagrams)
	}
}

// Carriers returns how many carriers run. The mutex must be held.
func (p *Pump) Carriers() int { return len(p.running) }

// Run moves frames over c until it fails or is closed, then closes it and
// returns why it ended, which is never nil. If ready is false, nothing of the
// log is sent before the other end has said what it has. Started is called,
// with the mutex held, when the carrier has an id. The mutex must not be held.
func (p *Pump) Run(c carrier.Carrier, ready bool, started func(session.CarrierID)) error {
	size := 0
	if c.Datagrams() {
		size = carrier.MaxDatagram
	}
	r := &running{stream: make(chan struct{}, 1), datagrams: make(chan struct{}, 1)}
	p.mu.Lock()
	r.takes = p.wanted
	id := p.peer.Up(time.Now(), size, ready)
	p.running[id] = r
	started(id)
	p.mu.Unlock()

	var wg sync.WaitGroup
	done := make(chan struct{})
	var once sync.Once
	var cause error
	run := func(f func() error) {
		wg.Go(func() {
			err := f()
			once.Do(func() {
				cause = err
				close(done)
				c.Close()
			})
		})
	}
	run(func() error { return p.readStream(id, c, r) })
	run(func() error { return p.writeStream(id, c, r, done) })
	run(func() error { return p.writeDatagrams(id, c, r, done) })
	if size > 0 {
		run(func() error { return p.readDatagrams(id, c) })
	}
	wg.Wait()

	p.mu.Lock()
	p.peer.Down(time.Now(), id)
	delete(p.running, id)
	p.Wake()
	p.mu.Unlock()
	return cause
}

// errEnded is what a carrier's other goroutines end with; it is never the first.
var errEnded = errors.New("carrier ended")

func (p *Pump) readDatagrams(id session.CarrierID, c carrier.Carrier) error {
	for {
		b, err := c.ReceiveDatagram()
		if err != nil {
			return fmt.Errorf("datagrams: %w", err)
		}
		p.mu.Lock()
		err = p.receiveDatagram(id, b)
		p.received()
		p.Wake()
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// receiveDatagram takes the frames of a datagram. Where the bytes are no frame,
// it drops the rest of them: a stream would bring the same frames intact.
func (p *Pump) receiveDatagram(id session.CarrierID, b []byte) error {
	now := time.Now()
	p.peer.Received(id)
	for len(b) > 0 {
		f, n, err := buffer.Parse(b)
		if err != nil {
			p.peer.Corrupted()
			return nil
		}
		if err := p.peer.Receive(now, id, session.DatagramLane, f); err != nil {
			return fmt.Errorf("datagram: %w", err)
		}
		b = b[n:]
	}
	return nil
}

// writeDatagrams also keeps the carrier's time.
func (p *Pump) writeDatagrams(id session.CarrierID, c carrier.Carrier, r *running, done <-chan struct{}) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	room := make([]byte, 0, carrier.MaxDatagram)
	for {
		p.mu.Lock()
		now := time.Now()
		b := p.peer.Datagram(now, id, room)
		deadline := p.peer.Deadline(id)
		p.mu.Unlock()
		if b != nil {
			if err := c.SendDatagram(b); err != nil {
				return fmt.Errorf("datagrams: %w", err)
			}
			continue
		}
		var due <-chan time.Time
		if deadline.After(now) {
			timer.Reset(deadline.Sub(now))
			due = timer.C
		} else if !deadline.IsZero() {
			wake(r.stream) // it is for the stream, which may be busy
		}
		select {
		case <-due:
		case <-r.datagrams:
		case <-done:
			return errEnded
		}
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
