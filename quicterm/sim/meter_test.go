//go:build linux || darwin

package main

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
)

// meterInterval is the time that each reading of the meters is for.
const meterInterval = 10 * time.Second

// A meter counts what a client's process costs. Its process's lock guards it.
type meter struct {
	packets              int // of UDP, sent
	sockets, connections int // opened: of UDP, one for each dial of QUIC, and of TCP
	events               int // told, each of which is a reason to dial again
	before               int // sockets of the interval before
	received             int // packets of UDP, each of which may have an ack
	waiting              int // frames of input that the server has not acknowledged, at the end
	distrusts            int // how often the path was trusted no longer
}

// opened counts a socket. A dial that has none, for want of descriptors, sends nothing.
func (m *meter) opened(c interface{ Close() error }) {
	if _, isUDP := c.(*socket); isUDP {
		m.sockets++
	} else {
		m.connections++
	}
}

// readMeters reads all clients' meters again and again, until the world is closed.
func (w *world) readMeters() {
	last, pipes, silent := make(map[*actor]meter), make(map[*actor]*progress), make(map[*actor]int)
	for {
		select {
		case <-time.After(meterInterval):
		case <-w.closed:
			return
		}
		for _, a := range w.everyone() {
			now := a.process.read()
			a.mu.Lock()
			best, worst, distrusts := a.best, a.worst, a.distrusts
			a.best, a.worst, a.distrusts = a.state, a.state, 0
			attached := a.s != nil && !a.over && !a.killed
			a.mu.Unlock()
			before, measured := last[a]
			d := meter{
				now.packets - before.packets, now.sockets - before.sockets, now.connections - before.connections,
				now.events - before.events, before.before, now.received - before.received, 0, distrusts,
			}
			if s := a.current(); s != nil && best == client.Offline { // the question wakes the client
				d.waiting = s.Status().Unacked
			}
			if !a.session.pty() && attached {
				if pipes[a] == nil {
					pipes[a] = new(progress)
				}
				pipes[a].look(a, worst == client.Live)
			}
			if silent[a]++; d.packets > 0 || worst != client.Live || !attached {
				silent[a] = 0
			}
			if n := time.Duration(silent[a]) * meterInterval; n > maxSilence && a.usesQUIC() {
				w.failf("%s is live, and has sent no packet for %v", a.name, n)
			}
			now.before = d.sockets
			if last[a] = now; measured && attached {
				w.checkMeter(a, best, worst, d)
			}
		}
	}
}

// maxSilence is how long a client that is live by QUIC may send nothing: it pings each 25 s, and it may be starved for a while.
const maxSilence = time.Minute

// usesQUIC reports whether the client runs and has a path by QUIC.
func (a *actor) usesQUIC() bool {
	s := a.current()
	return s != nil && a.process.halted() == nil &&
		slices.ContainsFunc(s.Status().Paths, func(p client.Path) bool { return p.Transport == client.QUIC })
}

// maxStall is how long a pipe may bring nothing while its client is live all the time: programs pause for 20 s at most, and
// the slowest link lasts a minute.
const maxStall = 3 * time.Minute

// A progress is how much a pipe has brought, and since when it is not more.
type progress struct {
	bytes int
	since time.Time
}

// look checks that a pipe brings something while its client is live.
func (p *progress) look(a *actor, live bool) {
	a.mu.Lock()
	bytes, slow := int(a.received), a.slow != nil
	a.mu.Unlock()
	s := a.session
	s.mu.Lock()
	bytes += s.consumed + int(s.printed)
	lost := s.lost
	s.mu.Unlock()
	if bytes != p.bytes || !live || slow || lost || a.process.halted() != nil {
		p.bytes, p.since = bytes, time.Now()
	} else if time.Since(p.since) > maxStall {
		a.world.failf("%s is live, and its pipe %s has brought nothing for %v", a.name, s.name, maxStall)
		p.since = time.Now()
	}
}

func (p *process) read() meter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.meter
}

// What a client may do at most in each state, from migrate/timers.go and docs/performance.md.
const (
	urgentInterval = 100 * time.Millisecond // between knocks, and between rounds of dials, whatever happens
	firstRounds    = 250 * time.Millisecond // between the rounds of an outage, at first
	grace          = 50 * time.Millisecond  // between pings on a path while input waits
	pingInterval   = time.Second            // between rounds of dials by TCP
	activeFor      = time.Minute            // after traffic, a session is idle

	bulkDials    = 8   // up to four bulk carriers by TCP, and as many in place of those that bring nothing
	dialPackets  = 16  // of a dial of QUIC that has 3 s: four times two of its handshake and two of early data
	earlyPackets = 32  // of early data more, if as many frames of input wait: the initial congestion window of QUIC
	livePackets  = 150 // a second, to type 5 keys a second with 60 % loss, and to acknowledge a flood
	idlePackets  = 4   // of each of two paths in meterInterval: pings and acks
)

// exceeded says which ceiling a client has broken in meterInterval, or nothing.
func exceeded(best, worst client.State, idle bool, ports int, m meter) string {
	const second = int(meterInterval / time.Second)
	candidates := 2 * ports // IPv4 and IPv6 of each
	// A live client looks for better paths: a server may refuse them, and a network change again and again.
	packets, sockets := livePackets*second+m.received, int(meterInterval/urgentInterval)
	// Each time that it trusts its path no longer, two rounds dial all candidates, and each has a socket for knocks.
	sockets = max(sockets, 3*candidates*(1+m.distrusts+m.events))
	connections := (second+1)*candidates + bulkDials
	switch {
	case idle:
		// When the penalty of an interface ends, after up to 16 minutes, each of its paths may move, once.
		packets = 2*idlePackets + dialPackets*min(m.sockets+m.before, ports)
		sockets, connections = max(ports-m.before, 0), 1
	case best == worst && best == client.Offline:
		sockets = int(meterInterval/firstRounds) + 2*candidates*(1+m.events)
		// A dial may be of the last interval.
		knocks, pings := int(meterInterval/urgentInterval), ports*int(meterInterval/grace)
		packets = knocks + pings + (dialPackets+min(m.waiting, earlyPackets))*(m.sockets+m.before)
	}
	for _, c := range []struct {
		what    string
		n, most int
	}{
		{"packets", m.packets, packets}, {"sockets", m.sockets, sockets}, {"TCP connections", m.connections, connections},
	} {
		if c.n > c.most {
			return fmt.Sprintf("%d %s in %v, and at most %d are allowed", c.n, c.what, meterInterval, c.most)
		}
	}
	return ""
}

// checkMeter checks that what a client did in meterInterval is at most what its states allow.
func (w *world) checkMeter(a *actor, best, worst client.State, m meter) {
	idle := w.idle(a.session) && best == client.Live && worst == client.Live
	state := "in between"
	switch {
	case idle:
		state = "while idle"
	case best == worst:
		state = "while " + best.String()
	}
	if !a.session.pty() {
		state += ", pipe"
	}
	w.peak("packets "+state, m.packets)
	w.peak("sockets "+state, m.sockets)
	w.peak("TCP connections "+state, m.connections)
	if what := exceeded(best, worst, idle, len(a.process.machine.ports), m); what != "" && a.session.pty() {
		w.failf("%s, %s: %s", a.name, state, what)
	}
}

// idle reports whether a session has had no traffic for activeFor and meterInterval: nobody types, and nothing prints.
func (w *world) idle(s *session) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	quiet := !w.quietSince.IsZero() && time.Since(w.quietSince) > activeFor+2*meterInterval
	return quiet && (s.script == "shell" || s.script == "full")
}

// peak records the greatest value of something.
func (w *world) peak(what string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peaks[what] = max(w.peaks[what], n)
}

// wakes returns about how often goroutines of this program have begun to run. The runtime counts one in eight.
func wakes() (n int) {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	for _, count := range sample[0].Value.Float64Histogram().Counts {
		n += 8 * int(count)
	}
	return n
}

// memoryInUse returns how many bytes of memory are in use.
func memoryInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// playQuiet lets no client type for settleTime. Idle sessions cost little then, and nothing waits any more.
func (w *world) playQuiet() {
	w.quiet.Store(true)
	w.mu.Lock()
	w.quietSince = time.Now()
	w.mu.Unlock()
	time.Sleep(activeFor)
	before := wakes()
	time.Sleep(settleTime - activeFor)
	woken, used := wakes()-before, memoryInUse()-w.memoryBefore
	w.mu.Lock()
	w.quietSince = time.Time{}
	w.mu.Unlock()
	processes, printed, idle := 1+len(w.sessions), 0, true
	for _, a := range w.everyone() {
		if s := a.current(); s != nil {
			processes++
			w.checkWaiting(a, s)
		}
	}
	for _, s := range w.sessions {
		s.mu.Lock()
		printed += len(s.log)
		idle = idle && !s.lost && (s.ended || s.script == "shell" || s.script == "full")
		s.mu.Unlock()
	}
	woken /= processes * int((settleTime-activeFor)/time.Second)
	used = (used - keptCopies*printed) / processes
	w.peak("memory in use", used)
	if used > maxMemory {
		w.failf("%d bytes are in use for each of %d processes, without what the programs have printed", used, processes)
	}
	if !idle {
		return
	}
	// Elsewhere the runtime's own work counts too, as much as the machine has of it.
	if w.peak("wakes of an idle process", woken); woken > maxIdleWakes && runtime.GOARCH == "wasm" {
		w.failf("each of %d idle processes runs %d times a second", processes, woken)
	}
}

const (
	// keptCopies is how much there is of what a program has printed: in its own record, which may have as much again to
	// grow, in the ring of the session, and as much as it has of overhead.
	keptCopies = 4

	// maxMemory is what each process may use apart from that. docs/performance.md has 0.4 to 0.8 MiB of an idle session
	// in use at each end; screens with scrollback and the packets that netem has under way are bounded, too.
	maxMemory = 4 << 20

	// maxIdleWakes is how often goroutines of each process may run in a second while all is idle: a ping every 25 s and
	// its answer take some twenty.
	maxIdleWakes = 8

	// maxLeftWakes is how often they may in the hour after everything has ended: the test itself does so, and natively the
	// runtime, as much as the machine is busy. One timer each second comes to 3600.
	maxLeftWakes = 1000
)

// checkWaiting checks that no input waits for a program that reads.
func (w *world) checkWaiting(a *actor, s *client.Session) {
	if n := s.Status().Unacked; n > 0 && a.session.lives() && a.session.pty() && a.session.script != "stops" {
		w.failf("%d frames of input of %s wait, %v after the last fault", n, a.name, 2*settleTime)
	}
}

// checkLeft checks that nothing is left of a world that is over: no socket, no carrier, no timer that does something.
func (w *world) checkLeft() {
	for _, a := range w.everyone() {
		a.process.mu.Lock()
		if n := len(a.process.open); n > 0 {
			w.failf("%s has ended, and %d of its sockets are open", a.name, n)
		}
		a.process.mu.Unlock()
	}
	w.host.holders.mu.Lock()
	for id, ends := range w.host.holders.ends {
		if n := len(ends); n > 0 {
			w.failf("session %v has ended, and %d of its carriers are open", id, n)
		}
	}
	w.host.holders.mu.Unlock()
	before := wakes()
	time.Sleep(time.Hour)
	n := wakes() - before
	if w.peak("wakes after the end", n); n > maxLeftWakes {
		w.failf("goroutines have run %d times in the hour after everything has ended", n)
	}
}
