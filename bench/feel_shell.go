//go:build linux

package main

import (
	"bytes"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// shellCommand runs a shell whose prompt has what no flood contains.
const (
	shellCommand = "exec env PS1='$ ' HISTFILE= sh"
	promptMark   = '$'
)

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
	first []byte // of what is shown, to say why there is no prompt
}

func newShell(m *measurement, connect *exec.Cmd, more io.Writer) *shell {
	s := &shell{m: m, more: more, found: make(chan time.Time, 1), first: make([]byte, 0, 300)}
	s.arm()
	s.x = rig.Watch(m, connect, s)
	s.prompt(rig.Patience)
	return s
}

func (s *shell) Write(b []byte) (int, error) {
	now := time.Now()
	s.mu.Lock()
	s.total += len(b)
	s.first = append(s.first, b[:min(len(b), cap(s.first)-len(s.first))]...)
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
		s.m.Fatalf("the client ended: %q", s.start())
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

// answer types and returns how long the next prompt takes.
func (s *shell) answer(text string, patience time.Duration) time.Duration {
	s.arm()
	start := time.Now()
	s.send(text)
	return s.prompt(patience).Sub(start)
}

// interrupt types Ctrl-C and returns how long the prompt takes.
func (s *shell) interrupt() time.Duration { return s.answer(interrupt, time.Minute) }

// shown returns how many bytes were shown.
func (s *shell) shown() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

func (s *shell) start() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.first)
}
