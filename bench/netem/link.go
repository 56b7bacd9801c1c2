// Package netem emulates network links: delay, jitter, loss, duplication,
// reordering, a limited rate with a queue before it, and black holes. A [Link]
// is pure; a [Proxy] puts one on each way of real UDP traffic.
package netem

import (
	"math/rand/v2"
	"time"
)

// Config is what a link does to packets. The zero value passes them on at once.
type Config struct {
	Delay     time.Duration // of every packet
	Jitter    time.Duration // on top of it, uniform from 0; packets keep their order
	Loss      float64       // probability from 0 to 1
	Duplicate float64       // probability that a packet arrives twice
	Reorder   float64       // probability that a packet skips delay and jitter
	Rate      int           // bits per second, 0 for no limit
	Queue     int           // bytes that wait for the rate before packets are dropped, 0 for 64 KiB
	Down      bool          // a black hole
}

const defaultQueue = 64 << 10

// Counters count what happened on a link.
type Counters struct {
	Packets, Bytes uint64 // that were offered
	Dropped        uint64 // packets that did not arrive
}

// A Link is one direction of a link. It is not safe for concurrent use.
type Link struct {
	cfg      Config
	rng      *rand.Rand
	free     time.Time // when the packets before have been sent at the rate
	latest   time.Time // arrival of those that keep their order
	counters Counters
}

// NewLink returns a link. The same seed makes the same losses.
func NewLink(cfg Config, seed uint64) *Link {
	return &Link{cfg: cfg, rng: rand.New(rand.NewPCG(seed, 0))}
}

// Set changes what the link does from now on.
func (l *Link) Set(cfg Config) { l.cfg = cfg }

// Counters returns what has been counted so far.
func (l *Link) Counters() Counters { return l.counters }

// Send offers a packet to the link, and returns when it arrives: never, once or
// twice.
func (l *Link) Send(now time.Time, size int) []time.Time {
	l.counters.Packets++
	l.counters.Bytes += uint64(size)
	sent, ok := l.transmit(now, size)
	if !ok || l.cfg.Down || l.rng.Float64() < l.cfg.Loss {
		l.counters.Dropped++
		return nil
	}
	arrivals := []time.Time{l.arrival(sent)}
	if l.cfg.Duplicate > 0 && l.rng.Float64() < l.cfg.Duplicate {
		arrivals = append(arrivals, l.arrival(sent))
	}
	return arrivals
}

// transmit returns when a packet has left at the link's rate, if there is room
// for it in the queue.
func (l *Link) transmit(now time.Time, size int) (time.Time, bool) {
	if l.cfg.Rate == 0 {
		return now, true
	}
	if l.free.Before(now) {
		l.free = now
	}
	queue := l.cfg.Queue
	if queue == 0 {
		queue = defaultQueue
	}
	waiting := int(l.free.Sub(now).Seconds() * float64(l.cfg.Rate) / 8)
	if waiting+size > queue {
		return now, false
	}
	l.free = l.free.Add(time.Duration(float64(size) * 8 / float64(l.cfg.Rate) * float64(time.Second)))
	return l.free, true
}

func (l *Link) arrival(sent time.Time) time.Time {
	if l.cfg.Reorder > 0 && l.rng.Float64() < l.cfg.Reorder {
		return sent
	}
	at := sent.Add(l.cfg.Delay)
	if l.cfg.Jitter > 0 {
		at = at.Add(time.Duration(l.rng.Int64N(int64(l.cfg.Jitter))))
	}
	if at.Before(l.latest) {
		at = l.latest
	}
	l.latest = at
	return at
}
