//go:build linux || darwin

package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A session is what the simulation knows of one: its program's own records are the truth that clients are compared with.
type session struct {
	world   *world
	name    string
	script  string // what its program does
	ring    int    // bytes, or 0 for the default
	seed    uint64 // of what it prints and is given
	size    int    // bytes of a pipe's output
	status  byte   // that the program ends with
	created bool   // a client has created it
	lost    bool   // its holder was killed, or its pipe was hung up
	unkept  bool   // its disk was full

	mu      sync.Mutex
	program *program
	started bool
	closed  bool                   // its holder has ended
	printed uint64                 // bytes that the program has printed
	log     []byte                 // these bytes
	took    map[string]int         // number of the last key that the program has read, by client
	typed   map[string][]time.Time // when each client has typed its keys

	numbers    map[wire.InstanceID]uint64    // those that the holder has given to clients that type
	lastWriter uint64                        // number of the last client that has displaced others
	displaced  map[wire.InstanceID]time.Time // clients that were, and when
	consumed   int                           // bytes of a pipe's input
	bad        string                        // what was wrong with the input, or ""
	ended      bool                          // the program has ended
	resized    int                           // how much of that was printed when a client has heard of another size
	since      time.Time                     // when it has printed for the first time
	logged     uint64                        // bytes in its holder's log at the program's end
	exit       uint64                        // those of the program's end

	toldUnkept bool // its holder has told that its record cannot be written
}

// newSession returns a session that nobody has created yet.
func (w *world) newSession(name, script string) *session {
	return &session{
		world: w, name: name, script: script, took: make(map[string]int), typed: make(map[string][]time.Time),
		numbers: make(map[wire.InstanceID]uint64), displaced: make(map[wire.InstanceID]time.Time),
	}
}

// typing records that a client types its next key now.
func (s *session) typing(client string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.typed[client] = append(s.typed[client][:n-1], time.Now())
}

// pty reports whether the session has a terminal.
func (s *session) pty() bool {
	return s.script != "cat" && s.script != "source" && s.script != "sink"
}

// A program runs the script of a session.
type program struct {
	*programtest.Stub
	session  *session
	printing chan struct{} // held while the program prints: a lock on which virtual time may pass
	hangup   chan struct{}
	once     sync.Once
}

// newProgram starts the program of a session.
func (w *world) newProgram(l *wire.Launch) holder.Program {
	s := w.session(l.Name)
	if s == nil {
		panic("a session that no client asked for: " + l.Name)
	}
	p := &program{Stub: programtest.NewStub(l.PTY), session: s, hangup: make(chan struct{}), printing: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		s.world.failf("session %s was started twice", s.name)
	}
	s.program, s.started = p, true
	return p
}

func (p *program) Signal(syscall.Signal) { p.end() }
func (p *program) Hangup(syscall.Signal) { p.end() }

func (p *program) Close() {
	p.end()
	p.Stub.Close()
	p.session.mu.Lock()
	defer p.session.mu.Unlock()
	p.session.closed = true
}

// end makes the program end soon.
func (p *program) end() {
	p.once.Do(func() {
		close(p.hangup)
		p.In.CloseWithError(io.EOF)
	})
}

// pause waits, and reports whether the program continues.
func (p *program) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-p.hangup:
		return false
	}
}

// print prints and counts. It reports whether the program continues.
func (p *program) print(b []byte) bool {
	p.printing <- struct{}{}
	defer func() { <-p.printing }()
	p.session.mu.Lock()
	if p.session.ended {
		p.session.mu.Unlock()
		return false
	}
	if p.session.printed == 0 {
		p.session.since = time.Now()
	}
	p.session.printed += uint64(len(b))
	p.session.log = append(p.session.log, b...)
	p.session.mu.Unlock()
	_, err := p.Out.Write(b)
	return err == nil
}

// Wait is the program.
func (p *program) Wait() (status byte, killed syscall.Signal) {
	s := p.session
	rng := rand.New(rand.NewPCG(s.seed, 1))
	switch s.script {
	case "cat":
		p.cat()
	case "source":
		p.source()
	case "sink":
		p.sink(rng)
	default:
		var wg sync.WaitGroup
		stop := make(chan struct{})
		if s.script == "flood" || s.script == "silent" || s.script == "ends" {
			wg.Go(func() { p.background(rng, stop) })
		}
		p.shell(rand.New(rand.NewPCG(s.seed, 2)))
		close(stop)
		p.end()
		wg.Wait()
		if s.script == "full" {
			p.print([]byte("\x1b[m\x1b[?1049l"))
		}
	}
	p.printing <- struct{}{}
	defer func() { <-p.printing }()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	p.Out.Close()
	p.Err.Close()
	return s.status, 0
}

// shell reads keys and prints something for each. ^D ends it. A key is a client's name, a number and a semicolon.
func (p *program) shell(rng *rand.Rand) {
	s := p.session
	if s.script == "full" {
		p.print([]byte("\x1b[?1049h\x1b[2J\x1b[?25l"))
	}
	var rest []byte
	buf := make([]byte, 4096)
	for {
		n, err := p.In.Read(buf)
		rest = append(rest, buf[:n]...)
		for {
			i := bytes.IndexAny(rest, ";\x04")
			if i < 0 {
				break
			}
			if rest[i] == 4 {
				return
			}
			key := string(rest[:i])
			rest = rest[i+1:]
			s.read(key)
			if !p.print(p.echo(rng, key)) {
				return
			}
		}
		if err != nil {
			return
		}
		if s.script == "stops" && rng.IntN(20) == 0 && !p.pause(time.Duration(rng.IntN(int(2*time.Minute)))) {
			return
		}
	}
}

// echo returns what a key shows.
func (p *program) echo(rng *rand.Rand, key string) []byte {
	if p.session.script != "full" {
		end := " "
		if rng.IntN(8) == 0 {
			end = "\r\n"
		}
		return []byte(fmt.Sprintf("\x1b[3%dm%s\x1b[m%s", rng.IntN(8), key, end))
	}
	b := fmt.Appendf(nil, "\x1b[%d;%dH\x1b[4%dm%s", 1+rng.IntN(30), 1+rng.IntN(100), rng.IntN(8), key)
	switch rng.IntN(10) {
	case 0:
		b = append(b, "\x1b[K"...)
	case 1:
		b = fmt.Appendf(b, "\x1b[%d;%dr\x1b[%dS\x1b[r", 1+rng.IntN(5), 10+rng.IntN(10), 1+rng.IntN(3))
	case 2:
		b = append(b, "\x1b[2J"...)
	case 3:
		b = append(b, "漢字 e\u0301"...)
	}
	return b
}

// background prints while the program reads, or ends it after a while.
func (p *program) background(rng *rand.Rand, stop <-chan struct{}) {
	wait := func(d time.Duration) bool {
		select {
		case <-stop:
			return false
		case <-p.hangup:
			return false
		case <-time.After(d):
			return true
		}
	}
	switch p.session.script {
	case "ends":
		wait(time.Duration(rng.IntN(int(5 * time.Minute))))
		p.end()
	case "silent":
		if wait(time.Duration(rng.IntN(int(10*time.Minute))) + time.Minute) {
			p.print([]byte("the job is done\r\n"))
		}
	case "flood":
		for line := 0; wait(time.Duration(rng.IntN(int(30 * time.Second)))); {
			lines, pause := 20+rng.IntN(200), 5*time.Millisecond // they come in bursts
			if rng.IntN(4) == 0 {
				lines, pause = 10*lines, 0
			}
			for range lines {
				line++
				text := fmt.Appendf(nil, "\x1b[32mline %08d\x1b[m %s\r\n", line, noise(rng, rng.IntN(120)))
				if !p.print(text) || pause > 0 && !wait(pause) {
					return
				}
			}
		}
	}
}

// read records a key that the program has read, and checks that it is the next of its client.
func (s *session) read(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := bytes.IndexByte([]byte(key), '.')
	n := 0
	if i >= 0 {
		n, _ = strconv.Atoi(key[i+1:])
	}
	if n == 0 {
		s.failLocked("the program reads %q, which no client types", key)
		return
	}
	client := key[:i]
	if last := s.took[client]; n != last+1 {
		s.failLocked("after key %d of %s the program reads key %d", last, client, n)
	}
	s.took[client] = n
	a, typed := s.world.client(client), s.typed[client]
	if a == nil || n > len(typed) {
		s.failLocked("the program reads key %d of %s, which has typed %d", n, client, len(typed))
		return
	}
	if at, ok := s.displaced[a.request]; ok && typed[n-1].After(at) {
		s.failLocked("%s was displaced at %v, and the program reads key %d, typed later", client, at.Sub(s.world.begun), n)
	}
}

func (s *session) failLocked(format string, args ...any) {
	if s.bad == "" {
		s.bad = fmt.Sprintf(format, args...)
		s.world.failf("session %s: %s", s.name, s.bad)
	}
}

// cat prints what it reads.
func (p *program) cat() {
	buf := make([]byte, 8192)
	for {
		n, err := p.In.Read(buf)
		p.session.take(buf[:n])
		if n > 0 && !p.print(buf[:n]) || err != nil {
			return
		}
	}
}

// source prints a number of bytes.
func (p *program) source() {
	s := p.session
	for sent := 0; sent < s.size; {
		chunk := content(s.seed, sent, min(4096, s.size-sent))
		if !p.print(chunk) {
			return
		}
		if sent += len(chunk); s.seed%2 == 0 && sent%(64<<10) == 0 && !p.pause(100*time.Millisecond) {
			return
		}
	}
}

// sink reads all, with pauses.
func (p *program) sink(rng *rand.Rand) {
	buf := make([]byte, 8192)
	for {
		n, err := p.In.Read(buf)
		p.session.take(buf[:n])
		if err != nil {
			p.print([]byte("end"))
			return
		}
		if rng.IntN(20) == 0 && !p.pause(time.Duration(rng.IntN(int(20*time.Second)))) {
			return
		}
	}
}

// take checks the next bytes of a pipe's input.
func (s *session) take(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bytes.Equal(b, content(s.seed, s.consumed, len(b))) {
		s.failLocked("input from byte %d is not what was written", s.consumed)
	}
	s.consumed += len(b)
}

// content returns bytes of a stream that a seed gives.
func content(seed uint64, from, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		x := (uint64(from+i)/8+1)*0x9e3779b97f4a7c15 ^ seed
		x ^= x >> 29
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 32
		b[i] = byte(x >> (8 * uint((from+i)%8)))
	}
	return b
}

// noise returns bytes that are hard to compress.
func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789ABCDEF"[rng.IntN(16)]
	}
	return b
}
