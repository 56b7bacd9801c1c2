//go:build linux

package suite

import (
	"slices"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/netem"
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
	up, down     netem.Counters
	counted      bool // the links count
	resent, sent int  // bytes, by the clients
}

// A side is the processes of the clients, or of the server.
type side struct {
	name   string
	pids   []int
	cpu    time.Duration
	memory int  // bytes
	gone   bool // a process has ended, and what it cost is not known
}

func newCost(t *measure.T, j *work.Job, s scenario.Scenario) *cost {
	c := &cost{t: t, job: j, scenario: s}
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
	c.up, c.down = c.count()
	for i := range c.sides {
		c.sides[i].cpu = measure.CPUTime(c.t, c.sides[i].pids...)
	}
}

func (c *cost) end() {
	for i := range c.sides {
		s := &c.sides[i]
		if s.gone = slices.ContainsFunc(s.pids, measure.Gone); s.gone {
			continue
		}
		s.cpu = measure.CPUTime(c.t, s.pids...) - s.cpu
		for _, pid := range s.pids {
			s.memory += measure.PSS(c.t, pid)
		}
	}
	c.lasted = time.Since(c.began)
	up, down := c.count()
	c.counted = up.Packets+down.Packets > 0
	c.up.Packets, c.up.Bytes = up.Packets-c.up.Packets, up.Bytes-c.up.Bytes
	c.down.Packets, c.down.Bytes = down.Packets-c.down.Packets, down.Bytes-c.down.Bytes
	resent, sent := c.countResent()
	c.resent, c.sent = resent-c.resent, sent-c.sent
}

// count returns what was offered to all links.
func (c *cost) count() (up, down netem.Counters) {
	for _, client := range c.job.Clients {
		u, d := client.Counters()
		up.Add(u)
		down.Add(d)
	}
	return up, down
}

// countResent asks the program, if there is a bound.
func (c *cost) countResent() (resent, sent int) {
	if server, ok := c.job.Server.(program.Resender); ok && c.scenario.Bounded("resent") {
		return server.Resent(c.t, c.clients)
	}
	return 0, 0
}

// figures are of one session: "wire", bytes a second both ways; "packets up" and "packets
// down", a second; "client cpu" and "server cpu", seconds for the whole work; "client
// memory" and "server memory", MB at its end; and, only if they have bounds, "cpu" of both
// sides, and "resent", the share of what clients sent that they had sent before. What is
// not known is left out.
func (c *cost) figures() (figures []work.Figure) {
	n := float64(len(c.job.Clients))
	add := func(metric, unit string, value float64, portable bool) {
		figures = append(figures, work.Figure{Metric: metric, Unit: unit, Values: []float64{value}, Portable: portable})
	}
	if c.counted {
		seconds := n * c.lasted.Seconds()
		add("wire", "B/s", float64(c.up.Bytes+c.down.Bytes)/seconds, true)
		add("packets up", "/s", float64(c.up.Packets)/seconds, true)
		add("packets down", "/s", float64(c.down.Packets)/seconds, true)
	}
	for _, s := range c.sides {
		if !s.gone && len(s.pids) > 0 {
			add(s.name+" cpu", "s", s.cpu.Seconds()/n, false)
			add(s.name+" memory", "MB", float64(s.memory)/n/1e6, false)
		}
	}
	if c.scenario.Bounded("cpu") && !c.sides[0].gone && !c.sides[1].gone {
		add("cpu", "s", (c.sides[0].cpu+c.sides[1].cpu).Seconds()/n, false)
	}
	if c.sent > 0 {
		add("resent", "%", 100*float64(c.resent)/float64(c.sent), true)
	}
	return figures
}
