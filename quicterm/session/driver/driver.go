// Package driver moves the frames of a [session.Endpoint] over its carriers. It adds
// the goroutines, timers and buffers that the pure endpoint does without.
//
// A carrier has a goroutine for each lane and direction. One that sends (lane.go) sleeps
// until its lane has something to send: [Driver.Wake] asks the endpoint, and wakes no
// other. One that receives gives frames to the endpoint and calls the owner's function.
//
// Frames on a carrier's stream may be compressed (policy.go, codec.go).
package driver

import (
	"errors"
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
)

// A Driver runs the carriers of one endpoint. The mutex that the driver was made with guards the endpoint and the log
// that it sends: other users of them hold it, and call Wake after changing them.
type Driver struct {
	mu          sync.Locker
	endpoint    *session.Endpoint
	received    func()
	compression Compression

	// Guarded by mu.
	running map[session.CarrierID]*running
	wakeUps uint64 // how often sleeping lanes woke; a test bounds it
}

// running is a carrier that runs. The driver's mutex guards it.
type running struct {
	stream       lane
	datagrams    lane
	hasDatagrams bool
	close        func() error
	sender       carrier.Sender // nil if it does not count
	keepalive    bool           // a datagram is due, if only an empty one
}

// New returns a driver for an endpoint. It calls received, with the mutex held, each
// time after it has given frames to the endpoint.
func New(mu sync.Locker, endpoint *session.Endpoint, received func()) *Driver {
	return &Driver{
		mu:       mu,
		endpoint: endpoint,
		received: received,
		running:  make(map[session.CarrierID]*running),
	}
}

// Compress sets what both ends compress, before the first carrier. Without a call, that is nothing.
func (d *Driver) Compress(what Compression) {
	if d.compression = what; what > On {
		d.compression = Auto
	}
}

// Keepalive sends an empty datagram on a carrier, which its transport acknowledges, unless another is due.
// It returns false if the carrier has no datagrams. The mutex must be held.
func (d *Driver) Keepalive(id session.CarrierID) bool {
	r := d.running[id]
	if r == nil || !r.hasDatagrams {
		return false
	}
	r.keepalive = true
	r.datagrams.rouse()
	return true
}

// closeDead closes the bulk carriers that deliver nothing while others do.
func (d *Driver) closeDead() {
	for id, r := range d.running {
		if d.endpoint.Dead(id) {
			r.close()
		}
	}
}

// Sent returns how many bytes the carriers have given to the system to send, or false if one does not count them. The
// mutex must be held.
func (d *Driver) Sent() (bytes uint64, ok bool) {
	for _, r := range d.running {
		if r.sender == nil {
			return 0, false
		}
		n, counts := r.sender.Sent()
		if bytes += n; !counts {
			return 0, false
		}
	}
	return bytes, len(d.running) > 0
}

// Carriers returns how many carriers run. The mutex must be held.
func (d *Driver) Carriers() int { return len(d.running) }

// Run moves frames over c until it fails or is closed, then closes it and returns why it ended, which is never nil.
// If ready is false, it sends nothing of the log before the peer has said what it has. It calls started, with the
// mutex held, when the carrier has an id. The mutex must not be held.
func (d *Driver) Run(c carrier.Carrier, ready bool, started func(session.CarrierID)) error {
	size := 0
	if c.Datagrams() {
		size = maxDatagram
	}
	d.mu.Lock()
	id := d.endpoint.Up(time.Now(), size, ready)
	r := &running{
		stream:       newLane(id, session.StreamLane),
		datagrams:    newLane(id, session.DatagramLane),
		hasDatagrams: size > 0,
		close:        c.Close,
	}
	r.sender, _ = c.(carrier.Sender)
	d.running[id] = r
	started(id)
	d.mu.Unlock()

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
	run(func() error { return d.readStream(id, c) })
	run(func() error { return d.writeStream(id, c, r, done) })
	if size > 0 {
		run(func() error { return d.readDatagrams(id, c) })
		run(func() error { return d.writeDatagrams(id, c, r, done) })
	}
	wg.Wait()

	d.mu.Lock()
	d.endpoint.Down(time.Now(), id)
	delete(d.running, id)
	d.Wake()
	d.mu.Unlock()
	return cause
}

// errEnded is what a carrier's other goroutines end with. It is never the first error.
var errEnded = errors.New("carrier ended")
