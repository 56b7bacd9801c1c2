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
	Burst     Burst         // losses on top
	Duplicate float64       // probability that a packet arrives twice
	Reorder   float64       // probability that a packet skips delay and jitter
	Early     time.Duration // how much of them it skips at most, uniform from 0; 0 for all
	Rate      int           // bits per second, 0 for no limit
	Queue     int           // bytes that wait for the rate before packets are dropped, 0 for 64 KiB
	Down      bool          // a black hole
}

// A Burst is a time in which all packets are lost, such as by interference or a handover.
// It is the model of Gilbert and Elliott with time in place of packets: sending more does
// not end a burst sooner, and all packets see the same bursts. Its length and the time
// between two are exponentially distributed.
type Burst struct {
	Mean  time.Duration // length of a burst
	Share float64       // of the time that bursts take, from 0 to less than 1
}

const defaultQueue = 64 << 10

// Counters count the packets of a link.
type Counters struct {
	Packets, Bytes uint64 // that were offered, lost or not
}

// Add adds the counters of another link.
func (c *Counters) Add(other Counters) {
	c.Packets += other.Packets
	c.Bytes += other.Bytes
}

// A Link is one direction of a link. It is not safe for concurrent use.
type Link struct {
	cfg      Config
	rng      *rand.Rand
	free     time.Time // when all packets before are sent at the rate
	latest   time.Time // arrival of those that keep their order
	bursts   bursts
	counters Counters
}

// NewLink returns a link. The same seed makes the same losses.
func NewLink(cfg Config, seed uint64) *Link {
	l := &Link{rng: rand.New(rand.NewPCG(seed, 0))}
	l.bursts.rng = rand.New(rand.NewPCG(seed, 1))
	l.Set(cfg)
	return l
}

// Set changes what the link does from now on.
func (l *Link) Set(cfg Config) {
	if cfg.Burst != l.cfg.Burst {
		l.bursts.until = time.Time{}
	}
	l.cfg = cfg
}

// Counters returns what has been counted so far.
func (l *Link) Counters() Counters { return l.counters }

// Send offers a packet to the link, and returns when it arrives: never, once or
// twice.
func (l *Link) Send(now time.Time, size int) []time.Time {
	l.counters.Packets++
	l.counters.Bytes += uint64(size)
	sent, ok := l.transmit(now, size)
	burst := l.cfg.Burst.Share > 0 && l.bursts.on(l.cfg.Burst, now)
	if !ok || l.cfg.Down || l.rng.Float64() < l.cfg.Loss || burst {
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
		if l.cfg.Early == 0 {
			return sent
		}
		early := time.Duration(l.rng.Int64N(int64(l.cfg.Early)))
		return sent.Add(max(0, l.cfg.Delay-early))
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
