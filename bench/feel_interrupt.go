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
	slowRate  = 1_000_000 // bits per second
	bloated   = 1 << 20   // bytes that wait before the slow link
	interrupt = "\x03"

	// usedFor is for how long the link's use is looked at before Ctrl-C, after
	// the flood has had time to find the link's rate.
	usedFor   = 3 * time.Second
	floodLead = 4 * time.Second

	interrupts = 10
)

// shellCommand runs a shell whose prompt has what no flood contains.
const (
	shellCommand = "exec env PS1='$ ' HISTFILE= sh"
	promptMark   = '$'
)

// interruptFlood types Ctrl-C to programs that flood slow links, each its own.
func (f *feeling) interruptFlood(m *measurement) (string, bool) {
	const rtt = 60 * time.Millisecond
	h := m.host(manyClients)
	exe, err := os.Executable()
	if err != nil {
		m.Fatal(err)
	}
	connects := make([]*exec.Cmd, interrupts)
	proxies := make([]*netem.Proxy, interrupts)
	for i := range proxies {
		proxies[i] = h.Proxy(netem.Config{Delay: rtt / 2, Rate: slowRate, Queue: bloated})
		connects[i] = h.Via(proxies[i].Addr(), "connect", []string{"-t"}, shellCommand)
	}
	times := make([]time.Duration, interrupts)
	used := make([]float64, interrupts)
	skipped := make([]error, interrupts)
	m.sideBySide(interrupts, func(m *measurement, i int) {
		lines := new(floodLines)
		s := newShell(m, connects[i], lines)
		time.Sleep(settle + time.Duration(i)*feelPace)
		s.send(exe + " flood\r")
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
		100*sum/interrupts, 100*least), mid <= 2*rtt+40*time.Millisecond && sum/interrupts >= 0.9
}

// linkUse returns which share of a link's rate arrives at the client for a time.
func linkUse(p *netem.Proxy, rate int) float64 {
	_, before := p.Arrived()
	start := time.Now()
	time.Sleep(usedFor)
	_, after := p.Arrived()
	return 8 * float64(after-before) / time.Since(start).Seconds() / float64(rate)
}

// A shell is a session with a shell on a terminal, of which only is kept when the
// prompt comes.
type shell struct {
	m    *measurement
	x    *rig.Terminal
	more io.Writer

	mu    sync.Mutex
	armed bool
	found chan time.Time
	total int
}

func newShell(m *measurement, connect *exec.Cmd, more io.Writer) *shell {
	s := &shell{m: m, more: more, found: make(chan time.Time, 1)}
	s.arm()
	s.x = rig.Watch(m, connect, s)
	s.prompt(rig.Patience)
	return s
}

func (s *shell) Write(b []byte) (int, error) {
	now := time.Now()
	s.mu.Lock()
	s.total += len(b)
	if s.armed && bytes.IndexByte(b, promptMark) >= 0 {
		s.armed = false
		s.found <- now
	}
	s.mu.Unlock()
	return s.more.Write(b)
}

// arm has the next prompt looked for.
func (s *shell) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
}

// prompt waits for the prompt.
func (s *shell) prompt(patience time.Duration) time.Time {
	select {
	case at := <-s.found:
		return at
	case <-s.x.Closed():
		s.m.Fatal("the client ended")
	case <-time.After(patience):
		s.m.Fatalf("no prompt within %v", patience)
	}
	return time.Time{}
}

func (s *shell) send(text string) {
	if _, err := s.x.TTY.WriteString(text); err != nil {
		s.m.Fatal(err)
	}
}

// interrupt types Ctrl-C and returns how long the prompt takes.
func (s *shell) interrupt() time.Duration {
	s.arm()
	start := time.Now()
	s.send(interrupt)
	return s.prompt(time.Minute).Sub(start)
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
