//go:build linux

package event

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Chaos returns events at random, at even intervals, for clients with two interfaces
// behind NATs, and then one that ends them all. The same seed gives the same events.
func Chaos(seed uint64, count int, from, interval time.Duration) (events []Event) {
	rng := rand.New(rand.NewPCG(seed, 0))
	var paths [2]path
	for n := range count {
		at := from + time.Duration(n)*interval
		i := rng.IntN(len(paths))
		p := &paths[i]
		add := func(what string, do func(c Client)) {
			events = append(events, Event{At: at, What: fmt.Sprintf("interface %d: %s", i, what), Client: do})
		}
		switch rng.IntN(7) {
		case 0, 1:
			if p.down = !p.down; p.down {
				add("down", func(c Client) { c.Interface(i).Down() })
			} else {
				add("up", func(c Client) { c.Interface(i).Up() })
			}
		case 2:
			wasDown := p.down
			p.down = false
			add("another address", func(c Client) {
				if wasDown {
					c.Interface(i).Up()
				}
				c.Interface(i).Readdress()
			})
		case 3:
			p.hole = !p.hole
			add(fmt.Sprintf("black hole %v", p.hole), p.apply(i))
		case 4:
			add("the NAT forgets", func(c Client) { c.Interface(i).Forget() })
		case 5:
			p.loss = rng.Float64() * 0.2
			add(fmt.Sprintf("%.0f %% loss", 100*p.loss), p.apply(i))
		default:
			away := time.Duration(rng.Int64N(int64(interval)))
			events = append(events, KillDaemon(at, at+away, nil)...)
		}
	}
	for i := range events {
		events[i].Ends = false
	}
	return append(events, Event{At: from + time.Duration(count)*interval, What: "all is well", Ends: true,
		Client: func(c Client) {
			for i, p := range paths {
				if p.down {
					c.Interface(i).Up()
				}
				c.Interface(i).Set(c.Usual)
			}
		}})
}

// A path is what Chaos has made of an interface.
type path struct {
	down, hole bool
	loss       float64
}

// apply returns what gives an interface the loss of its path.
func (p path) apply(i int) func(c Client) {
	return func(c Client) {
		cfg := c.Usual
		cfg.Loss, cfg.Down = p.loss, p.hole
		c.Interface(i).Set(cfg)
	}
}
