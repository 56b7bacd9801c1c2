//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

const (
	slowRTT   = 60 * time.Millisecond
	slowRate  = 1_000_000 // bits per second
	bloated   = 1 << 20   // bytes that wait before the slow link
	interrupt = "\x03"

	// usedFor is for how long the link's use is looked at before Ctrl-C, after
	// the flood has had time to find the link's rate.
	usedFor   = 3 * time.Second
	floodLead = 4 * time.Second

	interrupts = 10

	// promptWithin is how soon the prompt is to come.
	promptWithin = 2*slowRTT + 40*time.Millisecond
)

// interruptFlood types Ctrl-C to programs that flood slow links, each its own.
func (f *feeling) interruptFlood(m *measurement) (string, bool) {
	h := m.host(manyClients)
	connects := make([]*exec.Cmd, interrupts)
	proxies := make([]*netem.Proxy, interrupts)
	for i := range proxies {
		proxies[i] = h.Proxy(netem.Config{Delay: slowRTT / 2, Rate: slowRate, Queue: bloated})
		connects[i] = h.Via(proxies[i].Addr(), "connect", []string{"-t"}, shellCommand)
	}
	times := make([]time.Duration, interrupts)
	used := make([]float64, interrupts)
	skipped := make([]error, interrupts)
	m.sideBySide(interrupts, func(m *measurement, i int) {
		lines := new(floodLines)
		s := newShell(m, connects[i], lines)
		time.Sleep(settle + time.Duration(i)*feelPace)
		s.send(executable(m) + " flood\r")
		time.Sleep(floodLead)
		used[i] = linkUse(proxies[i], slowRate)
		times[i] = s.interrupt()
		skipped[i] = lines.check()
		if f.verbose {
			m.Logf("%v, link used %.0f %%, skipped: %v", ms(times[i]), 100*used[i], skipped[i])
		}
	})
	for i, err := range skipped {
		if err != nil {
			m.Fatalf("session %d: %v", i, err)
		}
	}
	least, sum := used[0], 0.0
	for _, u := range used {
		least = min(least, u)
		sum += u
	}
	mid := median(times)
	return fmt.Sprintf("%v, worst %v of %d; link %.0f %% used, least %.0f %%", ms(mid), ms(times[len(times)-1]), len(times),
		100*sum/interrupts, 100*least), mid <= promptWithin && sum/interrupts >= 0.9
}

// interruptYes types Ctrl-C to a program that prints the same all the time.
func (f *feeling) interruptYes(m *measurement) (string, bool) {
	const (
		rtt    = 20 * time.Millisecond
		runs   = 2 * time.Second
		within = 60 * time.Millisecond
	)
	h := m.host(nil)
	p := h.Proxy(netem.Config{Delay: rtt / 2, Rate: slowRate, Queue: bloated})
	s := newShell(m, h.Via(p.Addr(), "connect", []string{"-t"}, shellCommand), io.Discard)
	var times []time.Duration
	for range interrupts {
		s.send("yes\r")
		time.Sleep(runs)
		took := s.interrupt()
		if times = append(times, took); f.verbose {
			m.Logf("%v", ms(took))
		}
		time.Sleep(settle / 2)
	}
	mid := median(times)
	return fmt.Sprintf("%v, worst %v of %d", ms(mid), ms(times[len(times)-1]), len(times)), mid <= within
}

// skipBacklog types Ctrl-C and ~n after a program has flooded for as long as
// nothing arrived, once output comes again.
func (f *feeling) skipBacklog(m *measurement) (string, bool) {
	const (
		sessions  = 3
		outage    = time.Minute
		floodRate = 1_000_000 // bytes per second: all of it fits the buffer
		skip      = interrupt + "\r~n"
	)
	link := netem.Config{Delay: slowRTT / 2, Rate: slowRate, Queue: bloated}
	times := make([]time.Duration, sessions)
	m.sideBySide(sessions, func(m *measurement, i int) {
		h := m.host(map[string]string{"log_level": `"info"`})
		p := h.Proxy(link)
		s := newShell(m, h.Via(p.Addr(), "connect", []string{"-t"}, shellCommand), io.Discard)
		time.Sleep(settle)
		s.send(fmt.Sprintf("%s flood --rate %d\r", executable(m), floodRate))
		time.Sleep(floodLead)
		down := link
		down.Down = true
		p.Set(down)
		time.Sleep(outage)
		before := s.shown()
		p.Set(link)
		for start := time.Now(); s.shown() == before; time.Sleep(feelPace / 10) {
			if time.Since(start) > rig.Patience {
				m.Fatal("no output after the outage")
			}
		}
		time.Sleep(settle)
		if times[i] = s.answer(skip, rig.Patience); f.verbose {
			m.Logf("%v", ms(times[i]))
		}
	})
	mid := median(times)
	return fmt.Sprintf("%v, worst %v of %d", ms(mid), ms(times[len(times)-1]), len(times)), mid <= promptWithin
}

// executable returns the path of this program, which floods in sessions.
func executable(m *measurement) string {
	exe, err := os.Executable()
	if err != nil {
		m.Fatal(err)
	}
	return exe
}

// linkUse returns which share of a link's rate arrives at the client for a time.
func linkUse(p *netem.Proxy, rate int) float64 {
	_, before := p.Arrived()
	start := time.Now()
	time.Sleep(usedFor)
	_, after := p.Arrived()
	return 8 * float64(after-before) / time.Since(start).Seconds() / float64(rate)
}

// floodLines keeps what a terminal shows of a flood.
type floodLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *floodLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

var wholeLine = regexp.MustCompile(fmt.Sprintf(`(?m)^(\d{8}) [A-Za-z0-9+/]{%d}\r?$`, floodLine-9))

// kernelKeeps is the most that a kernel's terminal holds, and throws away when it
// is interrupted (termios(3), ISIG without NOFLSH): 64 KiB between its two ends,
// what a reader is given at once, and a program's last write.
const kernelKeeps = 80 << 10

// check returns what is wrong with the lines of a flood that was interrupted: all
// from the first on are to be there, but for those that the server's kernel has
// thrown away at the interrupt.
func (l *floodLines) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text.Bytes()
	last, at, gaps := 0, 0, 0
	for _, found := range wholeLine.FindAllSubmatchIndex(text, -1) {
		n, _ := strconv.Atoi(string(text[found[2]:found[3]]))
		if n != last+1 {
			gaps++
			lost := (n - last - 1) * (floodLine + 1)
			if near := len(text) - at; gaps > 1 || near > kernelKeeps || lost < 0 || lost > kernelKeeps {
				return fmt.Errorf("line %d comes after %d, %d bytes before the end", n, last, near)
			}
		}
		last, at = n, found[1]
	}
	if last == 0 {
		return fmt.Errorf("no lines in %d bytes", len(text))
	}
	return nil
}
