//go:build linux

package suite

import (
	"fmt"
	"slices"
	"strings"
	"sync"
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
	clients  []int          // processes
	names    map[int]string // of processes
	sides    [2]side

	began        time.Time
	lasted       time.Duration
	up, down     netem.Counters
	counted      bool // the links count
	resent, sent int  // bytes, by the clients

	mu      sync.Mutex
	outages map[*work.Client]*outage
}

// A side is the processes of the clients, or of the server.
type side struct {
	name   string
	pids   []int
	spent  []spent // by each process
	memory int     // bytes
	gone   bool    // a process has ended, and what it cost is not known
}

// spent is what a process has taken.
type spent struct {
	cpu      time.Duration
	switches int
}

func (s spent) minus(before spent) spent {
	return spent{s.cpu - before.cpu, s.switches - before.switches}
}

// sum returns what all processes of a side have taken.
func (s *side) sum() (all spent) {
	for _, one := range s.spent {
		all.cpu += one.cpu
		all.switches += one.switches
	}
	return all
}

// count returns what each process of a side has taken so far.
func (s *side) count(t *measure.T) (all []spent) {
	for _, pid := range s.pids {
		all = append(all, spent{measure.CPUTime(t, pid), measure.Switches(pid)})
	}
	return all
}

// An outage is from an event of a client to the one that ends the disturbance.
type outage struct {
	began  time.Time
	before int // bytes both ways
	bytes  int
	lasted time.Duration
}

func newCost(t *measure.T, j *work.Job, s scenario.Scenario) *cost {
	c := &cost{t: t, job: j, scenario: s, outages: make(map[*work.Client]*outage), names: make(map[int]string)}
	var pids []int
	for _, client := range j.Clients {
		c.clients = append(c.clients, client.PID())
		pids = append(pids, measure.Family(client.PID())...)
	}
	c.sides = [2]side{{name: "client", pids: pids}, {name: "server", pids: j.Server.Processes(t)}}
	for _, s := range c.sides {
		for _, pid := range s.pids {
			c.names[pid] = measure.Name(pid)
		}
	}
	return c
}

func (c *cost) begin() {
	c.resent, c.sent = c.countResent()
	c.began = time.Now()
	c.up, c.down = c.count()
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
		for i, now := range s.count(c.t) {
			s.spent[i] = now.minus(s.spent[i])
		}
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

// happens records that an event is about to happen to a client.
func (c *cost) happens(client *work.Client, ends bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	up, down := client.Counters()
	bytes := int(up.Bytes + down.Bytes)
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

// figures are of one session: "wire", bytes a second both ways; "packets up" and "packets
// down", a second; "client cpu" and "server cpu", seconds for the whole work; "client
// memory" and "server memory", MB at its end; if keys were typed, "cpu a key" and "switches a
// key" of both sides; and, only if they have bounds, "cpu" of both sides, "outage wire", and
// "resent", the share of what clients sent that they had sent before. What is not known is
// left out.
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
			add(s.name+" cpu", "s", s.sum().cpu.Seconds()/n, false)
			add(s.name+" memory", "MB", float64(s.memory)/n/1e6, false)
		}
	}
	if !c.sides[0].gone && !c.sides[1].gone {
		client, server := c.sides[0].sum(), c.sides[1].sum()
		if keys := float64(c.job.Keys); keys > 0 {
			add("cpu a key", "us", float64((client.cpu+server.cpu).Microseconds())/keys, false)
			add("switches a key", "", float64(client.switches+server.switches)/keys, false)
			figures[len(figures)-1].Note = c.breakdown()
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

// breakdown says which programs have taken the CPU time and made the switches of a key.
func (c *cost) breakdown() string {
	var names []string
	programs := make(map[string]spent)
	for _, s := range c.sides {
		for i, one := range s.spent {
			name := c.names[s.pids[i]]
			if _, known := programs[name]; !known {
				names = append(names, name)
			}
			p := programs[name]
			programs[name] = spent{p.cpu + one.cpu, p.switches + one.switches}
		}
	}
	keys := float64(c.job.Keys)
	var parts []string
	for _, name := range names {
		p := programs[name]
		parts = append(parts, fmt.Sprintf("%s %.0f us, %.1f", name, float64(p.cpu.Microseconds())/keys, float64(p.switches)/keys))
	}
	return strings.Join(parts, "; ")
}
