//go:build linux

package main

import (
	"fmt"
	"math"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/rig"
)

// A scenario is work that is done over a link on which things happen. All of them
// are in scenarios.go.
type scenario struct {
	name     string
	link     netem.Config // each way, between each client and the server
	events   []event
	work     work
	sessions int     // side by side, each behind a link of its own; 0 means 1
	bounds   []bound // of quicterm
	alone    bool    // it computes, and no other plays meanwhile
	quick    bool    // it is one of the few that --quick plays
	nat      bool    // it takes a NAT, which only network namespaces have
}

func (s scenario) clients() int { return max(s.sessions, 1) }

// rtt returns the round trip of the scenario's link at rest.
func (s scenario) rtt() time.Duration { return 2 * s.link.Delay }

// An event is something that happens on each client's link.
type event struct {
	at   time.Duration // since the work began
	what string
	do   func(l link, usual netem.Config)
	ends bool // what is bad is over, and it is looked at how soon the session is back
}

// readdressed gives the clients other addresses.
func readdressed(at time.Duration) event {
	return event{at, "another address", func(l link, _ netem.Config) { l.Readdress() }, true}
}

// forgotten has NATs forget the clients.
func forgotten(at time.Duration) event {
	return event{at, "the NAT forgets", func(l link, _ netem.Config) { l.Forget() }, true}
}

// out is a black hole that begins and ends.
func out(from, until time.Duration) []event {
	return []event{
		{from, "black hole", func(l link, usual netem.Config) {
			usual.Down = true
			l.Set(usual)
		}, false},
		{until, "link is back", func(l link, usual netem.Config) { l.Set(usual) }, true},
	}
}

// A bound is the most, or the least, that a quantile of a metric may be: some round
// trips and a constant on top, in the metric's unit.
type bound struct {
	metric   string
	quantile float64 // 0.5 for the median, 1 for the worst, 0 for the least
	rtts     float64 // round trips of the scenario's link; then the metric is in ms
	plus     float64
	atLeast  bool
}

// limit returns the bound for a round trip.
func (b bound) limit(rtt time.Duration) float64 {
	return b.rtts*inMS(rtt) + b.plus
}

// widened returns a bound that is easier to keep by a factor. What is to be complete is
// so on any machine.
func (b bound) widened(factor float64) bound {
	if b.metric == "complete" {
		return b
	}
	if b.atLeast {
		factor = 1 / factor
	}
	b.rtts *= factor
	b.plus *= factor
	return b
}

// kept reports whether a record keeps the bound.
func (b bound) kept(r result.Record, rtt time.Duration) bool {
	got, limit := r.Quantile(b.quantile), b.limit(rtt)
	if b.atLeast {
		return got >= limit
	}
	return got <= limit // NaN, of no values, is not
}

// text says the bound, as "p99 200".
func (b bound) text(rtt time.Duration) string {
	sign := ""
	if b.atLeast {
		sign = ">= "
	}
	const digits = 1e3 // of fractions; without an exponent
	limit := strconv.FormatFloat(math.Round(b.limit(rtt)*digits)/digits, 'f', -1, 64)
	return quantileName(b.quantile) + " " + sign + limit
}

// quantileName returns what a quantile is called.
func quantileName(q float64) string {
	switch q {
	case 0:
		return "min"
	case 1:
		return "max"
	default:
		return fmt.Sprintf("p%.3g", 100*q)
	}
}

// A program is a remote terminal that is measured.
type program interface {
	name() string

	// missing says what is to be installed before it can be measured, or "".
	missing() string

	// serve starts its server for a host of the stage. Cleanups of the measurement
	// end it. It fails the measurement where it cannot.
	serve(m *measurement, s stage) served
}

// A served is a program whose server runs.
type served interface {
	// command returns a client, not started, for a seat: a session that runs a
	// command of sh on a terminal. It is called for one seat after the other,
	// before the first is started. Where the seat is in a namespace, the client is
	// started there.
	command(at *seat, shell string) *exec.Cmd

	// processes returns those on the server's side, for all sessions together, but
	// not those that the sessions run. It is called while all sessions are open.
	processes(m *measurement) []int
}

// A stage is where a scenario plays once: a server, and seats of clients.
type stage interface {
	// host is the server: keys and folders, and where its daemon listens.
	host() *rig.Host

	// seat returns where client number n, from 0, runs, behind a link of its own.
	// Cleanups of the measurement end it.
	seat(m *measurement, n int, cfg netem.Config) *seat
}

// A seat is where a client runs.
type seat struct {
	link
	in   *rig.Namespace // nil for here
	addr netip.AddrPort // where quicterm's server is reached from it
}

// A link is the network between a client and the server. Its methods may be called
// at any time.
type link interface {
	// Set changes what happens to packets from now on, both ways.
	Set(cfg netem.Config)

	// Readdress gives the client another address, and Forget has a NAT forget it.
	// Both return when that has happened.
	Readdress()
	Forget()

	// Counters are of what was offered, lost or not, in bytes with the headers of IP.
	Counters() (up, down netem.Counters)

	// Arrived returns how many bytes have arrived at the server and at the client,
	// as the link's rate counts them.
	Arrived() (up, down uint64)
}

// A work is what is done in a scenario's sessions, and what is measured of it.
type work interface {
	// shell returns the command of sh that each session runs. What shows on the
	// terminal once it is ready is readyMark. Self is the path of this program.
	shell(self string) string

	// run does it, once all sessions are ready and their links are the scenario's.
	// It warms up as it wants, and calls begin, then end of the job.
	run(j *job) []figure
}

// readyMark is what a session shows when its work can begin. It is not in the
// command line.
const readyMark = "<1>"

// A figure is what was measured of one metric.
type figure struct {
	metric   string
	unit     string
	values   []float64
	at       []float64 // when each was begun, seconds since the work began; or nothing
	portable bool      // comparable between machines
	never    string    // why the program cannot do the work, or ""
	note     string    // what else is to be said of it, or ""
}

// A job is a scenario that plays: its sessions are open and ready.
type job struct {
	m        *measurement
	scenario scenario
	clients  []*client

	started time.Time // by begin
	onBegin func()
	onEnd   func()

	mu   sync.Mutex
	over map[*client][]time.Time // when what is bad was over
}

// A client is a person before a terminal with a session.
type client struct {
	*seat
	x      *rig.Terminal
	screen *screen
}

// begin ends the warm-up: events, counters and clocks start.
func (j *job) begin() time.Time {
	j.started = time.Now()
	j.onBegin()
	return j.started
}

// end ends what counts for traffic and computing. What comes late may be waited for
// afterwards.
func (j *job) end() { j.onEnd() }

// since returns seconds from the beginning of the work.
func (j *job) since(at time.Time) float64 { return at.Sub(j.started).Seconds() }

// ends returns when what is bad is to be over. For a client it is some milliseconds
// later, as events happen to one after the other.
func (j *job) ends() (at []time.Time) {
	for _, e := range j.scenario.events {
		if e.ends {
			at = append(at, j.started.Add(e.at))
		}
	}
	return at
}

// overFor returns when what was bad was over for a client, so far. A key that is typed
// before may still have gone the old way.
func (j *job) overFor(c *client) []time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.over[c])
}
