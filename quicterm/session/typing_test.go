package session

import (
	"slices"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// Typing is felt by how long a key takes to its echo, and paid for by what is
// sent for that.
type typing struct {
	keys     int
	loss     float64
	carriers int
	p90, p99 time.Duration // bounds
	max      time.Duration
	sends    float64 // datagrams and writes to streams for each key, both ways
}

func (c typing) run(t *testing.T) {
	w := newWorld(t, 1)
	for i, e := range w.ends {
		e.ring = buffer.NewRing(0)
		cfg := Config{Log: e.ring, Acked: 1, Next: 1, Window: 300 << 10, DelayAcks: i == 0, PeerDelaysAcks: i == 1}
		if i == 1 {
			cfg.Note = func(time.Time) []byte { return make([]byte, 9) } // a hint costs no datagram
		}
		e.endpoint = NewEndpoint(cfg)
	}
	for range c.carriers {
		w.connect()
	}
	w.append(1, 10) // a prompt
	w.run(time.Second)
	w.loss = c.loss
	typed := make(map[uint64]time.Time)
	var times []time.Duration
	echo := func() {
		server, client := w.ends[1], w.ends[0]
		for n := len(server.got); n > 0; n-- {
			w.consume(1, 1)
			w.append(1, 1)
		}
		for _, d := range client.got {
			if at, ok := typed[d.Seq]; ok {
				times = append(times, w.now.Sub(at))
			}
		}
		w.consume(0, len(client.got))
	}
	warm := 20
	var before int
	for i := range warm + c.keys {
		if i == warm {
			before = w.sent + w.writes
		}
		w.append(0, 1)
		if i >= warm {
			typed[w.ends[1].ring.Next()+uint64(w.pending())-1] = w.now
		}
		until := w.now.Add(200*time.Millisecond + time.Duration(w.rng.IntN(20))*time.Millisecond)
		for w.now.Before(until) {
			w.step(until)
			echo()
		}
	}
	w.settle(time.Minute)
	echo()
	slices.Sort(times)
	at := func(q float64) time.Duration { return times[int(q*float64(len(times)-1))] }
	sends := float64(w.sent+w.writes-before) / float64(c.keys)
	t.Logf("p50 %v, p90 %v, p99 %v, max %v of %d; %.1f sends a key; measured loss %.2f and %.2f",
		at(.5), at(.9), at(.99), at(1), len(times), sends, w.measuredLoss(0), w.measuredLoss(1))
	if at(.9) > c.p90 || at(.99) > c.p99 || at(1) > c.max {
		t.Errorf("want p90 %v, p99 %v, max %v", c.p90, c.p99, c.max)
	}
	if sends > c.sends {
		t.Errorf("want %.1f sends a key", c.sends)
	}
}

// pending returns how many keys were typed that were not echoed.
func (w *world) pending() int {
	return int(w.ends[0].ring.Next()-1) - int(w.ends[1].next-1)
}

func (w *world) measuredLoss(i int) float64 {
	for _, c := range w.ends[i].endpoint.carriers {
		return c.loss.rate()
	}
	return 0
}

func TestTyping(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]typing{
		"clean":              {5000, 0, 1, 101 * ms, 101 * ms, 101 * ms, 2.1},
		"1 % loss":           {20000, 0.01, 1, 101 * ms, 130 * ms, 400 * ms, 4.5},
		"5 % loss":           {10000, 0.05, 1, 111 * ms, 125 * ms, 400 * ms, 9},
		"29 % loss":          {20000, 0.29, 1, 136 * ms, 185 * ms, 390 * ms, 13},
		"29 % loss, 2 paths": {5000, 0.29, 2, 115 * ms, 140 * ms, 300 * ms, 25},
	} {
		if testing.Short() {
			c.keys /= 5
		}
		t.Run(name, c.run)
	}
}
