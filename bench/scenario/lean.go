//go:build linux

package scenario

import (
	"time"

	"github.com/quicterm/quicterm/bench/event"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/work"
)

const fastPace = 50 * time.Millisecond // from one key to the next

// sshGCM is ssh with the cipher of TLS on machines that compute AES in hardware.
var sshGCM = program.SSH{Cipher: "aes128-gcm@openssh.com"}

// lean is what sessions cost, in bytes and CPU time, beside ssh and mosh in the same run. It
// takes ten minutes.
var lean = []Scenario{
	beside(keys("clean keys, 5/s", far, 1, pace, 150,
		Bound{Metric: "wire", Quantile: 1, Plus: 1150}), program.SSH{}, program.Mosh),
	alone(beside(keys("clean keys, 20/s", far, 1, fastPace, 300,
		Bound{Metric: "wire", Quantile: 1, Rival: "ssh", Times: 1.4},
		Bound{Metric: "cpu a key", Quantile: 1, Rival: program.Mosh.Name(), Times: 1.5},
		Bound{Metric: "switches a key", Quantile: 1, Plus: 30}), program.SSH{}, program.Mosh)),
	beside(keys("keys with 1 % loss", lossy(0.01), 10, pace, 100,
		Bound{Metric: "truth", Quantile: 0.99, Plus: 130},
		Bound{Metric: "wire", Quantile: 1, Plus: 2400}), program.SSH{}, program.Mosh),
	beside(keys("keys with 29 % loss", lossy(0.29), 10, pace, 100,
		Bound{Metric: "truth", Quantile: 0.99, RTTs: 2},
		Bound{Metric: "wire", Quantile: 1, Plus: 6000}), program.Mosh),
	waiting("black hole of 20 s, one interface", 1),
	waiting("black hole of 20 s, two interfaces", 2),
	{
		Name: "idle, pings each 5 s", Link: far, Sessions: 2, Work: work.Idle{After: 5 * time.Second, Rest: 50 * time.Second},
		Bounds: []Bound{{Metric: "wire", Quantile: 1, Plus: 16}},
	},
	{
		Name: "idle, pings each 25 s", Link: far, Sessions: 2,
		Work:   work.Idle{After: 70 * time.Second, Rest: 100 * time.Second},
		Bounds: []Bound{{Metric: "wire", Quantile: 1, Plus: 3.5}},
	},
	{
		Name: "1000 idle sessions", Work: work.Thousand{Sessions: 1000}, Alone: true,
		Bounds: []Bound{{Metric: "daemon share", Quantile: 1, Plus: 1}},
	},
	{
		Name: "cat of 200 MB on loopback", Alone: true,
		Work:   work.Cat{Size: 200_000_000, Times: 2, Limit: time.Minute},
		Rivals: []program.Program{program.SSH{}},
		Bounds: []Bound{
			{Metric: "rate", Quantile: 0.5, Rival: "ssh", Times: 1, AtLeast: true},
			{Metric: "cpu", Quantile: 1, Rival: "ssh", Times: 1.8},
		},
	},
	{
		Name: "pipe of 1 GB on loopback", Alone: true,
		Work:   work.Pipe{Blocks: 10, Times: 2},
		Rivals: []program.Program{sshGCM},
		Bounds: []Bound{{Metric: "rate", Quantile: 0.5, Rival: sshGCM.Name(), Times: 0.7, AtLeast: true}},
	},
}

// keys is a number of keys of each of some clients.
func keys(name string, link netem.Config, clients int, pace time.Duration, count int, bounds ...Bound) Scenario {
	return Scenario{Name: name, Link: link, Sessions: clients,
		Work: work.Typing{Pace: pace, Spans: work.Keys(count, pace)}, Bounds: bounds}
}

// beside measures rivals too. All of them need a network that carries TCP.
func beside(s Scenario, rivals ...program.Program) Scenario {
	s.Namespaces, s.Rivals = true, rivals
	return s
}

func alone(s Scenario) Scenario {
	s.Alone = true
	return s
}

// waiting is clients with some interfaces in a black hole, of which the system sees no event, while
// input waits.
func waiting(name string, interfaces int) Scenario {
	s := outage(name, 20*time.Second, event.BlackHole, most("recovery", 1, 150, 600))
	s.Interfaces, s.Sessions = interfaces, 10
	s.Bounds = append(s.Bounds, Bound{Metric: "outage wire", Quantile: 1, Plus: 6000})
	return s
}
