//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An actor is a client: a process that attaches to a session, types, and shows what comes.
type actor struct {
	world   *world
	name    string
	session *session
	role    wire.Role
	whole   bool // it records
	page    bool // it runs in a browser
	paths   string
	process *process
	rng     *rand.Rand
	request wire.InstanceID

	leave  context.CancelFunc
	ended  chan struct{}
	typing sync.WaitGroup

	mu        sync.Mutex
	s         *client.Session // nil before it is attached
	typed     int             // keys that it has typed
	hurry     time.Time       // until when it types fast
	state     client.State    // of its link
	best      client.State    // since the meters were read
	worst     client.State    // the same
	distrusts int             // how often it has trusted its path no longer, since the meters were read
	terminal  *screen.Screen  // what its terminal shows
	size      wire.Size
	received  uint64 // bytes of output
	shown     int    // where the next output is in what the program has printed
	placed    bool   // that is known: no gap or snapshot has come since
	redrawn   bool   // a snapshot has come since
	gaps      uint64 // bytes that it was told to have lost
	lostTo    uint64 // the last frame of these
	creates   bool   // it has made the session, and so has seen all of its output
	snapshot  bool   // a snapshot stands for some output
	last      int    // number of the last line of a flood
	slow      chan struct{}
	killed    bool
	left      bool
	full      bool // its disk takes nothing more

	lostAccess bool   // its access was revoked
	readable   int    // bytes of the program's output that it may have read before
	lastFrame  uint64 // the number of the first frame that it may not see
	over       bool   // Run has returned, or it has given up
	status     int
	err        error
}

// newActor puts a client on a machine. It does nothing before run.
func (w *world) newActor(name string, m *machine, s *session, role wire.Role) *actor {
	a := &actor{
		world: w, name: name, session: s, role: role, process: m.newProcess(), ended: make(chan struct{}),
		rng: rand.New(rand.NewPCG(w.rng.Uint64(), 0)), terminal: screen.New(80, 24, screen.Limits{}),
		paths: []string{"failover", "failover", "standby", "redundant"}[w.rng.IntN(4)],
		size:  wire.Size{Cols: uint16(20 + w.rng.IntN(160)), Rows: uint16(5 + w.rng.IntN(50))},
	}
	for i := range a.request {
		a.request[i] = byte(w.rng.Uint32())
	}
	w.mu.Lock()
	w.actors = append(w.actors, a)
	w.mu.Unlock()
	return a
}

// run attaches, again and again until that succeeds, and stays until the session is over.
func (a *actor) run() {
	defer close(a.ended)
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	a.mu.Lock()
	a.leave = leave
	killed := a.killed
	a.mu.Unlock()
	if killed {
		return
	}
	s := a.attach(ctx)
	if s == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.over = true
		return
	}
	if a.session.pty() {
		if a.role.ReadOnly() {
			a.world.reached("watcher")
		} else {
			a.typing.Go(func() { a.typeKeys(ctx, s) })
		}
	} else {
		a.typing.Go(func() { a.feed(s) })
	}
	status, err := s.Run(ctx)
	a.mu.Lock()
	a.status, a.err, a.over = status, err, true
	a.mu.Unlock()
	a.world.countEnd(s, err)
	a.world.trace("%s ends: status %d, %v", a.name, status, err)
	leave()
	a.typing.Wait()
}

// attach returns nil if the client gives up: it was killed, or the session is no more.
func (a *actor) attach(ctx context.Context) *client.Session {
	for pause := time.Second; ctx.Err() == nil; a.sleep(ctx, time.Duration(a.rng.IntN(int(pause)))) {
		pause = min(2*pause, 20*time.Minute)
		if a.session.hungUp() { // a person that starts its command anew does not ask for this session
			a.world.reached("given up: hung up")
			return nil
		}
		token := a.world.host.token()
		if token == nil {
			continue
		}
		config := client.Config{
			Log:       a.world.logOf(a.name),
			Resolve:   func(context.Context) ([]netip.AddrPort, error) { return serverAddrs, nil },
			Network:   a.process,
			CheckHost: func(ssh.PublicKey) error { return nil },
			Token:     client.Once(token),
			Paths:     a.paths,
		}
		if a.page {
			inBrowser(&config, a.process)
		}
		c := client.New(config)
		request := &wire.Attach{
			Mode: wire.ModeAttachOrCreate, Session: a.session.name, Instance: a.request, PTY: a.session.pty(), Size: a.size,
			Role: a.role, Whole: a.whole,
		}
		existed := a.session.isCreated()
		if a.role != wire.RoleWriter || existed {
			request.Mode = wire.ModeAttach
		} else {
			request.Command = a.session.script
		}
		if a.session.pty() && !a.whole {
			request.Replay = wire.Replay{Kind: wire.ReplayScreen, Lines: 100}
		}
		// A person ends what takes so long. What ends it without them is the kernel's keepalive of TCP, which is not played here.
		tried, giveUp := context.WithTimeout(ctx, settleTime)
		s, err := c.Attach(tried, request, a.streams())
		giveUp()
		var refusal *wire.Error
		var displaced *client.DisplacedError
		var withdrawn *client.WithdrawnError
		switch {
		case err == nil:
			a.attached(s)
			return s
		case errors.As(err, &displaced) || errors.As(err, &withdrawn): // it was attached, and did not hear of it
			a.world.trace("%s ends: %v", a.name, err)
			a.world.reached("given up: displaced")
			a.lost(err)
			return nil
		case errors.As(err, &refusal) && existed && !cannotAsk(refusal):
			a.world.trace("%s gives up: %v", a.name, err)
			a.world.reached("given up: refused")
			a.refused(err)
			return nil
		}
		a.world.trace("%s cannot attach: %v", a.name, err)
	}
	return nil
}

// cannotAsk reports whether a refusal says that the server could not look for the session.
func cannotAsk(refusal *wire.Error) bool {
	return strings.Contains(refusal.Text, syscall.EMFILE.Error()) || strings.Contains(refusal.Text, "do not answer")
}

// refused checks that the session is refused only when it is no more.
func (a *actor) refused(err error) {
	if a.session.lives() && !strings.Contains(err.Error(), "pipe") && !a.world.revoked.Load() {
		a.world.failf("%s is refused session %s, which lives: %v", a.name, a.session.name, err)
	}
}

// lost checks that the client has lost its place to another one, or its access.
func (a *actor) lost(err error) {
	var displaced *client.DisplacedError
	known := a.world.revoked.Load()
	if errors.As(err, &displaced) {
		known = !a.role.ReadOnly() && slices.ContainsFunc(a.world.everyone(), func(b *actor) bool { return b != a && b.tookOver(a) })
	}
	if !known {
		a.world.failf("%s has lost its place to nobody: %v", a.name, err)
	}
}

func (s *session) isCreated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.created
}

// hungUp reports whether the session is over without its client, which has lost its access.
func (s *session) hungUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed && s.lost
}

// lives reports whether a client may expect the session to be there.
func (s *session) lives() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started && !s.ended && !s.lost
}

func (a *actor) attached(s *client.Session) {
	a.session.mu.Lock()
	a.session.created = true
	a.session.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s, a.creates = s, s.Created()
	if a.page {
		a.world.reached("page")
	}
	if !a.session.pty() {
		return
	}
	if size := s.Sizing().Size; size.Cols > 0 && !a.snapshot {
		a.terminal = screen.New(int(size.Cols), int(size.Rows), screen.Limits{})
	}
	a.world.trace("%s is attached to %s as %v", a.name, a.session.name, a.role)
}

func (a *actor) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-a.world.healed:
		time.Sleep(min(d, time.Second))
	case <-ctx.Done():
	}
}

// streams shows the output on a screen.
func (a *actor) streams() client.Streams {
	reset := func(snapshot []byte) {
		a.mu.Lock()
		defer a.mu.Unlock()
		cols, rows := a.terminal.Size()
		a.terminal = screen.New(cols, rows, screen.Limits{})
		a.terminal.Write(snapshot)
		a.snapshot, a.last, a.placed, a.redrawn = true, 0, false, true
	}
	st := client.Streams{
		Stdout: a,
		Changed: func(l client.LinkState) {
			a.world.reached("link " + l.State.String())
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.state == client.Live && l.State != client.Live {
				a.distrusts++
			}
			a.state, a.best, a.worst = l.State, min(a.best, l.State), max(a.worst, l.State)
		},
		Replaying: func() { a.world.reached("replay") },
		Lost: func(g client.Gap) {
			a.world.reached("gap told")
			if g.Snapshot != nil {
				a.world.reached("gap with snapshot")
			}
			a.mu.Lock()
			if g.From <= a.lostTo || g.To < g.From {
				a.world.failf("%s is told of a gap of frames %d to %d after one up to %d", a.name, g.From, g.To, a.lostTo)
			}
			a.checkScreenLocked(g.To)
			a.gaps, a.lostTo = a.gaps+g.Bytes, g.To
			a.last, a.placed = 0, false
			a.mu.Unlock()
			a.world.trace("%s: gap of frames %d to %d, %d bytes", a.name, g.From, g.To, g.Bytes)
			if g.Snapshot != nil {
				reset(g.Snapshot)
			}
		},
	}
	if a.session.pty() {
		st.Began = func(snapshot []byte) {
			a.mu.Lock()
			a.creates = false // a snapshot stands for output, as the session has another size
			a.mu.Unlock()
			reset(snapshot)
		}
		st.Resized = func(z wire.Sizing) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if cols, rows := a.terminal.Size(); z.Cols > 0 && (cols != int(z.Cols) || rows != int(z.Rows)) {
				a.session.mu.Lock()
				a.session.resized = len(a.session.log)
				a.session.mu.Unlock()
				a.terminal.Resize(int(z.Cols), int(z.Rows))
			}
		}
	}
	return st
}

// Write takes output. It may be slow.
func (a *actor) Write(b []byte) (int, error) {
	a.mu.Lock()
	slow := a.slow
	a.mu.Unlock()
	if slow != nil {
		<-slow
	}
	a.process.await()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.killed {
		return len(b), nil
	}
	if a.full && a.whole {
		a.world.reached("recorder's disk full")
		a.left = true
		a.leave() // as qt record does
		return 0, syscall.ENOSPC
	}
	if a.session.pty() {
		a.checkAccessLocked(b)
		a.checkOutput(b)
		a.terminal.Write(b)
		a.checkLines(b)
	} else if want := a.output(int(a.received), len(b)); !bytes.Equal(b, want) {
		a.world.failf("%s: output from byte %d is not what the program printed", a.name, a.received)
	}
	a.received += uint64(len(b))
	return len(b), nil
}

// checkOutput checks that the output is what the program has printed next or, after a gap or a snapshot, anywhere.
func (a *actor) checkOutput(b []byte) {
	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	log := a.session.log
	if a.creates && a.gaps == 0 {
		a.shown, a.placed = int(a.received), true
	}
	at := min(a.shown, len(log))
	if !a.placed {
		at = bytes.Index(log, b)
	}
	if at < 0 || !bytes.HasPrefix(log[at:], b) {
		a.world.failf("%s: output from byte %d is not what the program printed: %.100q", a.name, a.shown, b)
		a.creates, a.placed = false, false
		return
	}
	if a.redrawn {
		a.checkMeets(log[:at])
	}
	a.shown, a.placed, a.redrawn = at+len(b), true, false
}

// escapes are what programs print that is not shown, the last perhaps not whole.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]|\x1b[^A-Za-z]*$|[\r\n ]`)

// checkMeets checks that a snapshot shows the last that was printed before what comes next, unless a resize may have cut
// that off.
func (a *actor) checkMeets(before []byte) {
	const least, most = 8, 100
	if a.session.script == "full" || len(before) < a.session.resized+most {
		return
	}
	last := escapes.ReplaceAllString(string(before[max(len(before)-most, 0):]), "")
	if len(last) < least {
		return
	}
	shown := ""
	for _, row := range a.terminal.Dump().Screen {
		for _, run := range row.Runs {
			shown += strings.ReplaceAll(run[0], " ", "")
		}
	}
	if last = last[len(last)-least:]; !strings.Contains(shown, last) {
		a.world.failf("%s gets a snapshot, and then what was printed after %q, which it does not show", a.name, last)
	}
}

// output returns what the program of a pipe prints.
func (a *actor) output(from, n int) []byte {
	if a.session.script == "sink" {
		return []byte("end")[min(from, 3):min(from+n, 3)]
	}
	return content(a.session.seed, from, n)
}

// checkLines checks that no line of a flood comes twice, or is left out without a word.
func (a *actor) checkLines(b []byte) {
	for {
		i := bytes.Index(b, []byte("line "))
		if i < 0 || len(b) < i+13 {
			return
		}
		n := 0
		if _, err := fmt.Sscanf(string(b[i+5:i+13]), "%08d", &n); err == nil && n > 0 {
			if a.last != 0 && n <= a.last {
				a.world.failf("%s: line %d comes after line %d", a.name, n, a.last)
			}
			a.last = n
		}
		b = b[i+13:]
	}
}

// typeKeys types until the session or the simulation is over.
func (a *actor) typeKeys(ctx context.Context, s *client.Session) {
	for ctx.Err() == nil && !a.world.isQuiet() {
		pause := time.Duration(a.rng.IntN(int(400 * time.Millisecond)))
		if a.rng.IntN(100) == 0 {
			pause = time.Duration(a.rng.IntN(int(2 * time.Minute)))
		}
		if a.hurries() {
			pause /= 8
		}
		a.sleep(ctx, pause)
		if a.process.await() && ctx.Err() == nil && !a.world.isQuiet() {
			a.typeKey(s)
		}
	}
}

func (a *actor) hurries() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.hurry)
}

// typeKey types the next key.
func (a *actor) typeKey(s *client.Session) {
	a.mu.Lock()
	n := a.typed + 1
	a.mu.Unlock()
	a.session.typing(a.name, n)
	key := fmt.Sprintf("%s.%d;", a.name, n)
	if _, err := s.Write([]byte(key)); err != nil {
		return
	}
	a.world.keys.Add(1)
	a.mu.Lock()
	a.typed++
	a.mu.Unlock()
}

// feed writes a pipe's input.
func (a *actor) feed(s *client.Session) {
	if a.session.script != "source" {
		for at := 0; at < a.session.size; {
			n := min(1+a.rng.IntN(8192), a.session.size-at)
			if _, err := s.Write(content(a.session.seed, at, n)); err != nil {
				return
			}
			if at += n; a.rng.IntN(8) == 0 {
				time.Sleep(time.Duration(a.rng.IntN(int(2 * time.Second))))
			}
			a.process.await()
		}
	}
	s.CloseWrite()
}

// kill ends the client as SIGKILL does.
func (a *actor) kill() {
	a.mu.Lock()
	a.killed = true
	leave := a.leave
	if a.slow != nil {
		close(a.slow)
		a.slow = nil
	}
	a.mu.Unlock()
	a.process.kill()
	if leave != nil {
		leave()
	}
	<-a.ended
}

// slowDown makes the client read no output, or read it again.
func (a *actor) slowDown(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if on && a.slow == nil && !a.killed {
		a.slow = make(chan struct{})
	} else if !on && a.slow != nil {
		close(a.slow)
		a.slow = nil
	}
}

// present reports whether the client runs.
func (a *actor) present() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.killed && !a.over
}

func (a *actor) current() *client.Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.killed || a.over {
		return nil
	}
	return a.s
}

// typist reports whether the client types, and how much it has typed.
func (a *actor) typist() (typed int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.typed, a.s != nil && !a.killed && !a.over && a.session.pty() && !a.role.ReadOnly()
}
