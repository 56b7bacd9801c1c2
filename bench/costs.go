//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// A costs counts what sessions cost while work is done: bytes on the links, and the
// time and memory of the processes that the program needs, not of what the sessions
// run. The rule is the same for all programs.
type costs struct {
	m            *measurement
	job          *job
	here, server []int

	started, ended time.Time
	wire           uint64
	counted        bool             // the links count: a session has begun over them
	computed       [2]time.Duration // by the clients and on the server
	memory         [2]int           // bytes
	gone           [2]bool          // a process has ended, and what it took is not known
}

func newCosts(m *measurement, j *job, here, server []int) *costs {
	return &costs{m: m, job: j, here: here, server: server}
}

func (c *costs) begin() {
	c.started = time.Now()
	c.wire = c.sent()
	c.computed = [2]time.Duration{cpuTimes(c.m, c.here), cpuTimes(c.m, c.server)}
}

func (c *costs) end() {
	c.ended = time.Now()
	sent := c.sent()
	c.counted = sent > 0
	c.wire = sent - c.wire
	for i, pids := range [][]int{c.here, c.server} {
		if c.gone[i] = slices.ContainsFunc(pids, ended); c.gone[i] {
			continue
		}
		c.computed[i] = cpuTimes(c.m, pids) - c.computed[i]
		for _, pid := range pids {
			c.memory[i] += proportional(c.m, pid)
		}
	}
}

// sent returns how many bytes were offered to the links.
func (c *costs) sent() uint64 {
	sum := uint64(0)
	for _, client := range c.job.clients {
		up, down := client.Counters()
		sum += up.Bytes + down.Bytes
	}
	return sum
}

// figures are of one session: "wire" is bytes per second, both ways; "client cpu" and
// "server cpu" are seconds of computing for the whole work, and "client memory" and
// "server memory" are MB at its end. Of a side where a process has ended they are not
// known, nor is "wire" where links count nothing.
func (c *costs) figures() []figure {
	n := float64(len(c.job.clients))
	one := func(metric, unit string, v float64) figure {
		return figure{metric: metric, unit: unit, values: []float64{v / n}}
	}
	wire := one("wire", "B/s", float64(c.wire)/c.ended.Sub(c.started).Seconds())
	wire.portable = true
	var figures []figure
	if c.counted {
		figures = append(figures, wire)
	}
	for i, side := range []string{"client", "server"} {
		if !c.gone[i] {
			figures = append(figures, one(side+" cpu", "s", c.computed[i].Seconds()), one(side+" memory", "MB", float64(c.memory[i])/1e6))
		}
	}
	return figures
}

// ended reports whether a process has ended. Until its parent knows, it is there
// without memory.
func ended(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	return err != nil || bytes.HasPrefix(b, []byte("0 "))
}

var pssLine = regexp.MustCompile(`(?m)^Pss:\s+(\d+) kB$`)

// proportional returns how much memory is a process's own, and its share of what it
// shares with others (proc(5), Pss).
func proportional(m *measurement, pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		m.Fatal(err)
	}
	found := pssLine.FindSubmatch(b)
	if found == nil {
		m.Fatalf("no Pss of process %d", pid)
	}
	kb, _ := strconv.Atoi(string(found[1]))
	return kb << 10
}
