//go:build linux

package suite

import (
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/scenario"
	"github.com/quicterm/quicterm/bench/work"
)

// A cost is what sessions cost while work is done: packets on the links, and CPU time and
// memory of the processes that the program needs, without what the sessions run. The rule
// is the same for all programs.
type cost struct {
	t        *measure.T
	job      *work.Job
	scenario scenario.Scenario
	clients  []int // processes
	sides    [2]side

	began        time.Time
	lasted       time.Duration
	wire         int  // bytes on all links, both ways
	counted      bool // the links count
	resent, sent int  // bytes, by the clients

	mu      sync.Mutex
	outages map[*work.Client]*outage
}

// A side is the processes of the clients, or of the server.
type side struct {
	name   string
	pids   []int
	spent  spent
	memory int  // bytes
	gone   bool // a process has ended, and what it cost is not known
}

// spent is what processes have taken.
type spent struct {
	cpu      time.Duration
	switches int
}

func (s spent) minus(before spent) spent {
	return spent{s.cpu - before.cpu, s.switches - before.switches}
}

// count returns what the processes of a side have taken so far.
func (s *side) count(t *measure.T) spent {
	return spent{measure.CPUTime(t, s.pids...), measure.Switches(s.pids...)}
}

// An outage is from an event of a client to the one that ends the disturbance.
type outage struct {
	began  time.Time
	before int // bytes both ways
	bytes  int
	lasted time.Duration
}

func newCost(t *measure.T, j *work.Job, s scenario.Scenario) *cost {
	c := &cost{t: t, job: j, scenario: s, outages: make(map[*work.Client]*outage)}
	var pids []int
	for _, client := range j.Clients {
		c.clients = append(c.clients, client.PID())
		pids = append(pids, measure.Family(client.PID())...)
	}
	c.sides = [2]side{{name: "client", pids: pids}, {name: "server", pids: j.Server.Processes(t)}}
	return c
}

func (c *cost) begin() {
	c.resent, c.sent = c.countResent()
	c.began = time.Now()
	c.wire = -c.bytes()
	for i := range c.sides {
		c.sides[i].spent = c.sides[i].count(c.t)
	}
}

func (c *cost) end() {
	for i := range c.sides {
		s := &c.sides[i]
		if s.gone = slices.ContainsFunc(s.pids, measure.Gone); s.gone {
			continue
		}
		s.spent = s.count(c.t).minus(s.spent)
		for _, pid := range s.pids {
			s.memory += measure.PSS(c.t, pid)
		}
	}
	c.lasted = time.Since(c.began)
	offered := c.bytes()
	c.wire, c.counted = c.wire+offered, offered > 0
	resent, sent := c.countResent()
	c.resent, c.sent = resent-c.resent, sent-c.sent
}

// bytes returns what was offered to all links.
func (c *cost) bytes() (sum int) {
	for _, client := range c.job.Clients {
		sum += offered(client)
	}
	return sum
}

// offered returns the bytes that were offered to a client's links.
func offered(client *work.Client) int {
	up, down := client.Counters()
	return int(up.Bytes + down.Bytes)
}

// happens records that an event is about to happen to a client.
func (c *cost) happens(client *work.Client, ends bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes := offered(client)
	switch o := c.outages[client]; {
	case o == nil && !ends:
		c.outages[client] = &outage{began: time.Now(), before: bytes}
	case o != nil && ends && o.lasted == 0:
		o.bytes, o.lasted = bytes-o.before, time.Since(o.began)
	}
}

// outageWire returns what each client has sent and got in its first outage, in bytes a second.
func (c *cost) outageWire() work.Figure {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := work.Figure{Metric: "outage wire", Unit: "B/s", Portable: true}
	for _, client := range c.job.Clients {
		if o := c.outages[client]; o != nil && o.lasted > 0 {
			f.Values = append(f.Values, float64(o.bytes)/o.lasted.Seconds())
		}
	}
	return f
}

// countResent asks the program, if there is a bound.
func (c *cost) countResent() (resent, sent int) {
	if server, ok := c.job.Server.(program.Resender); ok && c.scenario.Bounded("resent") {
		return server.Resent(c.t, c.clients)
	}
	return 0, 0
}

// figures are of one session: "wire", bytes a second both ways; "client cpu" and "server cpu", seconds for the whole
// work; "client memory" and "server memory", MB at its end; if keys were typed, "cpu a key" and "switches a key" of
// both sides; and, only if they have bounds, "cpu" of both sides, "outage wire", and "resent", the share of what
// clients sent that they had sent before. What is not known is left out.
func (c *cost) figures() (figures []work.Figure) {
	n := float64(len(c.job.Clients))
	add := func(metric, unit string, value float64, portable bool) {
		figures = append(figures, work.Figure{Metric: metric, Unit: unit, Values: []float64{value}, Portable: portable})
	}
	if c.counted {
		add("wire", "B/s", float64(c.wire)/n/c.lasted.Seconds(), true)
	}
	for _, s := range c.sides {
		if !s.gone && len(s.pids) > 0 {
			add(s.name+" cpu", "s", s.spent.cpu.Seconds()/n, false)
			add(s.name+" memory", "MB", float64(s.memory)/n/1e6, false)
		}
	}
	if !c.sides[0].gone && !c.sides[1].gone {
		client, server := c.sides[0].spent, c.sides[1].spent
		if keys := float64(c.job.Keys); keys > 0 {
			add("cpu a key", "us", float64((client.cpu+server.cpu).Microseconds())/keys, false)
			add("switches a key", "", float64(client.switches+server.switches)/keys, false)
		}
		if c.scenario.Bounded("cpu") {
			add("cpu", "s", (client.cpu+server.cpu).Seconds()/n, false)
		}
	}
	if c.scenario.Bounded("outage wire") {
		figures = append(figures, c.outageWire())
	}
	if c.sent > 0 {
		add("resent", "%", 100*float64(c.resent)/float64(c.sent), true)
	}
	return figures
}
