//go:build linux || darwin

package main

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// cells are the networks, one factor at a time around a path of 100 ms that loses nothing.
var cells = []cell{
	{name: "no loss", link: lossy(0)},
	{name: "0.1 % loss", link: lossy(0.001)},
	{name: "1 % loss", link: lossy(0.01)},
	{name: "no loss at first, then 1 %", link: lossy(0), later: new(lossy(0.01))},
	{name: "no loss at first, then 5 %", link: lossy(0), later: new(lossy(0.05))},
	{name: "no loss at first, then 29 %", link: lossy(0), later: new(lossy(0.29))},
	{name: "5 % loss", link: lossy(0.05)},
	{name: "10 % loss", link: lossy(0.1)},
	{name: "29 % loss", link: lossy(0.29)},
	{name: "50 % loss", link: lossy(0.5)},
	{name: "bursts of 200 ms, 5 % of the time", link: netem.Config{
		Delay: trip / 2, Burst: netem.Burst{Mean: 200 * time.Millisecond, Share: 0.05}}},
	{name: "RTT 5 ms", link: netem.Config{Delay: 2500 * time.Microsecond}},
	{name: "RTT 5 ms, 5 % loss", link: netem.Config{Delay: 2500 * time.Microsecond, Loss: 0.05}},
	{name: "RTT 300 ms, 5 % loss", link: netem.Config{Delay: 150 * time.Millisecond, Loss: 0.05}},
	{name: "RTT 600 ms, 5 % loss", link: netem.Config{Delay: 300 * time.Millisecond, Loss: 0.05}},
	{name: "RTT 600 ms", link: netem.Config{Delay: 300 * time.Millisecond}},
	{name: "flood, 1 Mbit/s", link: netem.Config{Delay: trip / 2, Rate: 1e6}, floods: true},
	{name: "flood, 1 Mbit/s, 8 s of queue", link: netem.Config{Delay: trip / 2, Rate: 1e6, Queue: 1 << 20}, floods: true},
	{name: "black hole of 3 s", link: lossy(0), fail: holes, repair: heals, down: 3 * time.Second},
	{name: "no way back for 3 s, 200 bytes a key", link: lossy(0), prints: 200, fail: deafens, repair: heals, down: 3 * time.Second},
	{name: "no way back for 20 s", link: lossy(0), fail: deafens, repair: heals, down: 20 * time.Second},
	{name: "black hole of 20 s", link: lossy(0), fail: holes, repair: heals, down: 20 * time.Second},
	{name: "interfaces down for 5 s", link: lossy(0), fail: unplug, repair: plug, down: 5 * time.Second},
	{name: "interfaces down for 30 s", link: lossy(0), fail: unplug, repair: plug, down: 30 * time.Second},
	{name: "the path dies, another works", link: lossy(0), fail: dies},
}

func lossy(share float64) netem.Config { return netem.Config{Delay: trip / 2, Loss: share} }

func holes(w *world, _ int) {
	w.set(0, netem.Config{Down: true})
	w.set(1, netem.Config{Down: true})
}

// deafens drops what comes to the client.
func deafens(w *world, _ int) {
	w.net.Do(func() {
		for _, p := range w.machines[0].ports {
			p.from.Set(netem.Config{Down: true})
		}
	})
}

func heals(w *world, link netem.Config) {
	w.set(0, link)
	w.set(1, link)
}

func unplug(w *world, _ int) { w.plug(false) }

func plug(w *world, _ netem.Config) { w.plug(true) }

// dies makes the path that is in use a black hole.
func dies(w *world, used int) { w.set(used, netem.Config{Down: true}) }

// Typing at the bounds of the bench: p99 of 130 ms where 1 % of the packets is lost each way, and of 200 ms at 29 %.
func TestTyping(t *testing.T) {
	for name, most := range map[string]time.Duration{
		"no loss": trip + 10*time.Millisecond, "1 % loss": 130 * time.Millisecond, "29 % loss": 2 * trip,
	} {
		for _, c := range cells {
			if c.name == name {
				m := c.measure(t, 10, 2000, nil) // p99 of fewer keys is that of a few losses
				p50, p99 := at(m.took, 0.5), at(m.took, 0.99)
				t.Logf("%s: p50 %v, p99 %v, %d bytes a key", name, p50, p99, m.bytes/uint64(m.keys))
				if p99 > most {
					t.Errorf("%s: p99 %v, want at most %v", name, p99, most)
				}
			}
		}
	}
}
