package trace

import (
	"math/rand/v2"
	"time"
)

// A Network is what lies between the client and the server.
type Network struct {
	RTT    time.Duration
	Jitter time.Duration // added to each packet's way: up to this, equally likely
	Loss   float64       // of the packets each way, from 0 to 1
	Seed   uint64
}

// A lane carries packets one way. Each packet has all that is not acknowledged yet, so it brings
// what was lost before it too. What is not followed by another packet is sent again.
type lane struct {
	Network
	chance *rand.Rand
}

func (n Network) lane(direction uint64) *lane {
	return &lane{n, rand.New(rand.NewPCG(n.Seed, direction))}
}

// way returns how long after it was sent first a packet arrives, if no later one brings its content.
func (l *lane) way() time.Duration {
	d := l.RTT / 2
	if l.Jitter > 0 {
		d += time.Duration(l.chance.Int64N(int64(l.Jitter)))
	}
	for l.Loss > 0 && l.chance.Float64() < l.Loss {
		// The model repeats what is not acknowledged after 1/6 to 1/4 of a round trip.
		d += l.RTT/6 + time.Duration(l.chance.Int64N(int64(l.RTT/12)+1))
	}
	return d
}

// arrivals returns when what was sent at some times, in order, has arrived.
func (l *lane) arrivals(sent []time.Duration) []time.Duration {
	at := make([]time.Duration, len(sent))
	for i, t := range sent {
		at[i] = t + l.way()
	}
	for i := len(at) - 2; i >= 0; i-- {
		at[i] = min(at[i], at[i+1]) // the next packet has brought it
	}
	return at
}
