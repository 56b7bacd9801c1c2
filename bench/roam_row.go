//go:build linux

package main

import (
	"fmt"
	"sync"
	"time"
)

const (
	settle   = time.Second            // from the prompt of a new client to what happens to it
	lead     = 300 * time.Millisecond // of typing before that
	longLead = time.Second            // of typing before the end of an outage
	side     = 5                      // clients that are set up side by side
	hopeless = 3                      // failures after which a row is given up
)

// A roam is something that happens to the network of somebody who types. What
// counts is when the first key typed afterwards is echoed.
type roam struct {
	name          string
	median, worst time.Duration // bounds, counted from the event
	fromKey       bool          // they are counted from the key
	flags         []string      // of qt connect
	loss          float64       // on each of the client's interfaces, each way
	nat           bool          // behind each of them
	byName        bool          // the server is known by a name with addresses of both families

	// event is what happens. With an outage, back is what ends it, and the event
	// that is measured; one key is typed at its beginning, so that input waits.
	event  func(r *roamer, sample int)
	outage time.Duration
	back   func(r *roamer)
	quiet  bool // nobody types, but a program prints
}

// A sample is what was measured of one client.
type sample struct {
	took, rest time.Duration
	busy       bool
}

// A roaming runs the samples of rows.
type roaming struct {
	all     *measurements
	quick   bool
	verbose bool
	runs    int
	seed    uint64

	// Of all clients, a few are set up, one is measured and another types ahead
	// of that.
	setting, ahead, turn chan struct{}

	// Rows without an outage come one after the other, once the short outages
	// are over, and while the long ones go on.
	apart   chan struct{}
	outages sync.WaitGroup
}

// row returns a row for the table.
func (g *roaming) row(r roam) row {
	factor := time.Duration(1)
	if g.quick {
		factor = 2
	}
	return row{
		name:  r.name,
		bound: fmt.Sprintf("%v, worst %v", factor*r.median, factor*r.worst),
		measure: func(m *measurement) (string, bool) {
			out := func() {}
			if r.outage == 0 {
				defer g.whileOut()()
			} else {
				out = sync.OnceFunc(g.outages.Done)
				defer out()
			}
			samples, repeated := g.samples(m, &r, out)
			var took, rest []time.Duration
			for _, s := range samples {
				took = append(took, s.took)
				rest = append(rest, s.rest)
			}
			mid := median(took)
			worst := took[len(took)-1]
			figure := fmt.Sprintf("%v, worst %v of %d", ms(mid), ms(worst), len(took))
			if !r.quiet {
				figure += fmt.Sprintf("; at rest %v", ms(median(rest)))
			}
			if repeated > 0 {
				figure += fmt.Sprintf("; %d busy", repeated)
			}
			return figure, mid <= factor*r.median && worst <= factor*r.worst
		},
	}
}

func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// whileOut waits for the turn of a row without an outage, and returns what ends it.
func (g *roaming) whileOut() func() {
	g.outages.Wait()
	g.apart <- struct{}{}
	return func() { <-g.apart }
}

// samples measures clients of a new server until there are enough samples, and
// returns how many were not to be believed. Those of outages are kept
// nevertheless. It calls out in a long outage.
func (g *roaming) samples(m *measurement, r *roam, out func()) (kept []sample, busy int) {
	command := "cat"
	if r.quiet {
		command = "i=0; while :; do printf '%06d ' $i; i=$((i+1)); sleep 3; done"
	}
	s := newSite(m, r.byName, r.flags, command)
	var failed []error
	clients := 0
	for len(kept) < g.runs {
		n := min(side, g.runs-len(kept))
		if r.outage > 0 {
			n = g.runs
		}
		var mu sync.Mutex
		var set, measured, gone sync.WaitGroup
		set.Add(n)
		measured.Add(n)
		for i := range n {
			gone.Go(func() {
				isSet, isMeasured := sync.OnceFunc(set.Done), sync.OnceFunc(measured.Done)
				err := g.all.run(fmt.Sprintf("%s, client %d", r.name, clients+i), m.bin, func(m *measurement) {
					defer isMeasured()
					defer isSet()
					c := g.client(m, s, r, clients+i)
					isSet()
					set.Wait()
					time.Sleep(settle)
					one := g.measure(c, r, clients+i, out)
					if g.verbose {
						m.Logf("%v, at rest %v, busy: %v", ms(one.took), ms(one.rest), one.busy)
					}
					mu.Lock()
					if one.busy {
						busy++
					}
					if !one.busy || r.outage > 0 || busy > g.runs {
						kept = append(kept, one)
					}
					mu.Unlock()
					isMeasured()
					measured.Wait() // setting up and clearing away disturb
				})
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed = append(failed, err)
				}
			})
		}
		gone.Wait()
		if clients += n; len(failed) >= hopeless || r.outage > 0 {
			break
		}
	}
	if len(failed) > 0 {
		m.Fatalf("%d of %d failed: %v", len(failed), clients, failed[0])
	}
	return kept, busy
}

// client sets a client up.
func (g *roaming) client(m *measurement, s *site, r *roam, number int) *roamer {
	g.setting <- struct{}{}
	defer func() { <-g.setting }()
	return s.client(m, number+1, r.loss, r.nat)
}

// measure has something happen to a client. It calls out in a long outage.
func (g *roaming) measure(c *roamer, r *roam, number int, out func()) (s sample) {
	patience := 5*time.Second + r.worst
	event := func() { r.event(c, number) }
	before := lead
	if r.outage > 0 {
		if !r.quiet {
			c.key()
			c.check(patience)
		}
		event()
		if !r.quiet {
			c.key()
		}
		if r.outage > time.Minute {
			out()
		}
		time.Sleep(r.outage - longLead)
		event, before = func() { r.back(c) }, longLead
	}
	tick := func() { c.key() }
	if r.quiet {
		tick = func() {}
	}

	g.ahead <- struct{}{}
	ahead := sync.OnceFunc(func() { <-g.ahead })
	defer ahead()
	for until := time.Now().Add(before); time.Now().Before(until); time.Sleep(typing) {
		tick()
	}
	for mine := false; !mine; {
		select {
		case g.turn <- struct{}{}:
			mine = true
		case <-time.After(typing):
			tick()
		}
	}
	defer func() { <-g.turn }()
	ahead()
	if r.outage == 0 {
		s.rest = c.rest(int(lead / typing))
	}

	stalls := watchStalls()
	start := time.Now()
	event()
	first := 0
	if r.quiet {
		first = c.shown()
	} else {
		first = c.key()
		if r.fromKey {
			start = c.typed[first]
		}
	}
	s.took = c.await(first, patience, tick).Sub(start)
	s.busy = stalls() > believed
	if r.quiet { // all that is missing is to appear
		c.await(first+int(r.outage/(3*time.Second)), patience, tick)
	} else {
		const more = 10
		c.keys(more * typing)
		c.check(patience)
		if r.outage > 0 {
			s.rest = c.rest(more / 2)
		}
	}
	return s
}
