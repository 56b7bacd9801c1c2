//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	chaosEvents   = 60
	chaosInterval = time.Second
	chaosSettle   = 5 * time.Second // until what was opened for an event is closed
	chaosPatience = 30 * time.Second
	// Go keeps threads once it has made them for what blocks. More than this is
	// a thread for each event.
	chaosThreads = 8
)

// chaos returns a row in which everything happens, at random, while somebody types.
func (g *roaming) chaos() row {
	return row{
		name:  fmt.Sprintf("chaos, %d events", chaosEvents),
		bound: "each byte once; descriptors, threads and sessions as before",
		measure: func(m *measurement) (string, bool) {
			defer g.whileOut()()
			dir, err := os.MkdirTemp("", "qt")
			if err != nil {
				m.Fatal(err)
			}
			m.Cleanup(func() { os.RemoveAll(dir) })
			arrived := filepath.Join(dir, "arrived")
			s := newSite(m, false, nil, "tee "+arrived)
			c := s.client(m, 1, 0, true)
			c.keys(time.Second)
			time.Sleep(chaosSettle)
			before := s.open(c)

			rng := rand.New(rand.NewPCG(g.seed, 0))
			for range chaosEvents {
				name := s.havoc(rng, c)
				if g.verbose {
					m.Logf("%s; %d of %d keys are shown", name, c.shown(), len(c.typed))
				}
				c.keys(chaosInterval)
			}
			s.heal(c)
			healed := time.Now()
			c.await(len(c.typed)-1, chaosPatience, func() {})
			back := time.Since(healed)
			c.check(chaosPatience)
			var want strings.Builder
			for n := range c.typed {
				want.WriteString(keyText(n))
			}
			if got, err := os.ReadFile(arrived); err != nil || string(got) != want.String() {
				m.Fatalf("what arrived at the server is not what was typed: %d bytes of %d (%v)", len(got), want.Len(), err)
			}
			time.Sleep(chaosSettle)
			after := s.open(c)
			return fmt.Sprintf("%d keys, back within %v; client %v -> %v, daemon %v -> %v, sessions %d -> %d",
				len(c.typed), back.Round(time.Millisecond), before.client, after.client, before.daemon, after.daemon, before.sessions, after.sessions), after.within(before)
		},
	}
}

// havoc has one thing happen, and says what.
func (s *site) havoc(rng *rand.Rand, c *roamer) string {
	f := []*iface{c.wlan, c.wwan}[rng.IntN(2)]
	switch rng.IntN(7) {
	case 0, 1:
		if f.off = !f.off; f.off {
			f.down()
			return f.name + " down"
		}
		f.up()
		return f.name + " up"
	case 2:
		if f.off {
			f.off = false
			f.up()
		}
		f.readdress()
		return f.name + " readdressed"
	case 3:
		f.hole = !f.hole
		f.lose(f.hole)
		return fmt.Sprintf("%s black hole: %v", f.name, f.hole)
	case 4:
		f.port.Forget()
		return "NAT of " + f.name
	case 5:
		f.cfg.Loss = rng.Float64() * 0.2
		f.lose(f.hole)
		return fmt.Sprintf("%s loses %.0f %%", f.name, 100*f.cfg.Loss)
	default:
		s.host.Stop(syscall.SIGKILL)
		c.keys(time.Duration(rng.Int64N(int64(chaosInterval))))
		s.host.Start()
		return "daemon killed and started"
	}
}

// heal ends what havoc has begun.
func (s *site) heal(c *roamer) {
	for _, f := range []*iface{c.wlan, c.wwan} {
		if f.off {
			f.up()
		}
		f.off, f.hole, f.cfg.Loss = false, false, 0
		f.lose(false)
	}
}

// opened is what is open.
type opened struct {
	client, daemon held
	sessions       int
}

// held is what a process holds.
type held struct{ descriptors, threads int }

func (h held) String() string { return fmt.Sprintf("%d fds %d threads", h.descriptors, h.threads) }

func (h held) within(before held) bool {
	return h.descriptors <= before.descriptors && h.threads <= before.threads+chaosThreads
}

func (o opened) within(before opened) bool {
	return o.client.within(before.client) && o.daemon.within(before.daemon) && o.sessions == before.sessions
}

func (s *site) open(c *roamer) opened {
	sockets, err := filepath.Glob(s.host.Path("run/*/*.sock"))
	if err != nil {
		c.m.Fatal(err)
	}
	return opened{holding(c.m, c.x.Cmd.Process.Pid), holding(c.m, s.host.Daemon.Process.Pid), len(sockets)}
}

func holding(m *measurement, pid int) held {
	count := func(what string) int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", pid, what))
		if err != nil {
			m.Fatal(err)
		}
		return len(entries)
	}
	return held{count("fd"), count("task")}
}
