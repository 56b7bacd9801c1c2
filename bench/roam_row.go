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
	believed = 20 * time.Millisecond  // of a stall, past which the machine was too busy
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
}

// row returns a row for the table.
func (g *roaming) row(r roam) row {
	factor := time.Duration(1)
	if g.quick {
		factor = 2
	}
	return row{
		name:  r.name,
		bound: fmt.Sprintf("%v, worst %v", r.median, factor*r.worst),
		measure: func(m *measurement) (string, bool) {
			samples, repeated := g.samples(m, &r)
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
			return figure, mid <= r.median && worst <= factor*r.worst
		},
	}
}

func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// samples measures clients of a new server until there are enough samples, and
// returns how many were not to be believed. Those of long outages are kept
// nevertheless.
func (g *roaming) samples(m *measurement, r *roam) (kept []sample, busy int) {
	command := "cat"
	if r.quiet {
		command = fmt.Sprintf("i=0; while :; do printf '%s' $i; i=$((i+1)); sleep 3; done", "%06d ")
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
					one := g.measure(c, r, clients+i)
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

// measure has something happen to a client.
func (g *roaming) measure(c *roamer, r *roam, number int) (s sample) {
	patience := 5*time.Second + r.worst
	event := func() { r.event(c, number) }
	before := lead
	if r.outage > 0 {
		if !r.quiet {
			c.keys(lead)
			c.check(patience)
			s.rest = c.rest(1 << 20)
		}
		event()
		if !r.quiet {
			c.key()
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
	if !r.quiet {
		c.keys(5 * typing)
		c.check(patience)
	}
	return s
}

// watchStalls watches how long a goroutine that wants to run does not, until the
// function that it returns is called, which returns the longest time.
func watchStalls() func() time.Duration {
	done := make(chan struct{})
	worst := make(chan time.Duration)
	go func() {
		longest := time.Duration(0)
		for {
			select {
			case <-done:
				worst <- longest
				return
			default:
			}
			const nap = time.Millisecond
			before := time.Now()
			time.Sleep(nap)
			longest = max(longest, time.Since(before)-nap)
		}
	}()
	return func() time.Duration {
		close(done)
		return <-worst
	}
}
