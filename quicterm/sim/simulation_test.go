//go:build linux || darwin

package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// settleTime is how long after the last fault everything must be well: the longest pause between two dials of a client that
// was offline for long, a login, and an echo.
const settleTime = 2 * time.Minute

// A world is a server's machine, clients' machines and the network between them, on virtual time. It must be used in a
// bubble of testing/synctest.
type world struct {
	seed     uint64
	rng      *rand.Rand // for drawing, before the world begins
	net      *netem.Net
	host     *host
	machines []*machine
	sessions []*session
	faults   []*fault
	begun    time.Time
	running  sync.WaitGroup
	healed   chan struct{} // closed when all faults have ended
	closed   chan struct{} // closed when all is over
	// memoryBefore is how many bytes are in use before the world begins.
	memoryBefore int
	quiet        atomic.Bool  // clients type no more
	spoils       atomic.Int64 // share of the messages in the relay that are changed, in millionths
	lies         atomic.Int64 // share of those that it cuts or repeats, in millionths
	keys         atomic.Int64
	carrierLife  atomic.Int64 // after which the relay ends new connections to holders, or 0
	revoked      atomic.Bool  // somebody has revoked access
	free         atomic.Int64 // part of the server's memory that is, in percent
	// sentPackets is how many packets and segments were in the network, once it is closed.
	sentPackets uint64
	program     func(*wire.Launch) holder.Program // starts the program of a session

	mu         sync.Mutex
	actors     []*actor
	counts     map[string]int // faults
	states     map[string]int // of the machines
	peaks      map[string]int // of what the meters have read
	quietSince time.Time      // zero if it is not quiet
	failures   []string
	story      func(line string) // nil for none
	events     *os.File          // what has happened, in detail, or nil
	steps      int               // events
}

// newWorld returns a world without clients, whose daemon keeps its keys in a directory.
func newWorld(seed uint64, dir string) *world {
	// A bubble begins in 2000, before this program has started. quic-go counts from its start, and takes 0 for no time: with
	// times below 0, it never gives up a probe of a path that was lost.
	time.Sleep(40 * 365 * 24 * time.Hour)
	w := &world{seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), counts: make(map[string]int),
		states: make(map[string]int), peaks: make(map[string]int), closed: make(chan struct{}), begun: time.Now(), healed: make(chan struct{})}
	w.net, w.program = netem.NewNet(w.route), w.newProgram
	w.net.RouteStreams(w.routeStreams)
	w.free.Store(plentyMemory)
	w.host, w.memoryBefore = newHost(w, dir), memoryInUse()
	return w
}

// scripts are what programs do.
var scripts = []string{"shell", "shell", "full", "full", "flood", "silent", "stops", "ends", "cat", "source", "sink"}

// populate draws machines, sessions and clients.
func (w *world) populate() {
	rng := w.rng
	for i := range 1 + rng.IntN(4) {
		var links []netem.Config
		for range 1 + rng.IntN(3) {
			link := netem.Config{Delay: time.Duration(rng.IntN(int(150 * time.Millisecond)))}
			if rng.IntN(2) == 0 {
				link.Rate, link.Queue = 1_000_000+rng.IntN(20_000_000), 256<<10
			}
			links = append(links, link)
		}
		w.newMachine(fmt.Sprintf("m%d", i), links...)
	}
	for i := range 1 + rng.IntN(4) {
		s := w.newSession(fmt.Sprintf("s%d", i), scripts[rng.IntN(len(scripts))])
		s.seed, s.size, s.status = rng.Uint64(), rng.IntN(4<<20), byte(rng.IntN(100))
		if rng.IntN(3) == 0 {
			s.ring = 64<<10 + rng.IntN(256<<10)
		}
		w.sessions = append(w.sessions, s)
		w.newActor(fmt.Sprintf("c%d", len(w.actors)), w.anyMachine(), s, wire.RoleWriter)
		if !s.pty() {
			continue
		}
		for range rng.IntN(3) {
			role := []wire.Role{wire.RoleShare, wire.RoleWatch, wire.RoleWatch}[rng.IntN(3)]
			a := w.newActor(fmt.Sprintf("c%d", len(w.actors)), w.anyMachine(), s, role)
			a.whole = role == wire.RoleWatch && rng.IntN(2) == 0
		}
	}
}

func (w *world) anyMachine() *machine { return w.machines[w.rng.IntN(len(w.machines))] }

// plan draws faults over a time. Some worlds are quiet, others terrible.
func (w *world) plan(lasts time.Duration) {
	// The mean time between two faults is from some seconds to some minutes.
	mean := time.Duration(float64(2*time.Second) * float64(uint64(1)<<w.rng.IntN(6)))
	w.draw(w.rng, kinds, mean, lasts)
	rng := rand.New(rand.NewPCG(w.seed, 1))
	w.draw(rng, resourceKinds, 4*mean, lasts)
	w.draw(rand.New(rand.NewPCG(w.seed, 2)), serverKinds, 4*mean, lasts)
	w.draw(rand.New(rand.NewPCG(w.seed, 3)), storageKinds, 4*mean, lasts)
	if f := w.faults; len(f) > 0 && rng.IntN(3) == 0 {
		if f := f[rng.IntN(len(f))]; f.kind.change != nil {
			f.at = 0 // the network is bad before anybody logs in
			w.reached("bad network from the beginning")
		}
	}
}

// draw draws faults of some kinds, with a mean time between two of them.
func (w *world) draw(rng *rand.Rand, kinds []*kind, mean, lasts time.Duration) {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for at := time.Duration(0); ; {
		at += time.Duration(rng.ExpFloat64() * float64(mean))
		if at > lasts {
			break
		}
		f := &fault{number: len(w.faults), at: at, target: rng.Uint64() >> 8, x: rng.Float64()}
		n := rng.IntN(total)
		for _, k := range kinds {
			if n -= k.weight; n < 0 {
				f.kind = k
				break
			}
		}
		if f.kind.most > 0 {
			f.lasts = time.Duration(rng.Float64() * rng.Float64() * float64(f.kind.most))
		}
		w.faults = append(w.faults, f)
	}
}

// play lets everything happen, and then checks what must hold.
func (w *world) play() {
	w.startDaemon()
	for _, a := range w.everyone() {
		w.running.Go(a.run)
	}
	w.running.Go(w.readMeters)
	type moment struct {
		at    time.Duration
		do    func(*fault)
		fault *fault
	}
	var moments []moment
	for _, f := range w.faults {
		moments = append(moments, moment{f.at, w.begin, f}, moment{f.at + f.lasts, w.undo, f})
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	for _, m := range moments {
		time.Sleep(m.at - time.Since(w.begun))
		m.do(m.fault)
	}
	w.heal()
	w.check()
	w.close()
}

// heal ends all faults, and makes what is left of the world a good one.
func (w *world) heal() {
	for _, f := range w.faults {
		w.undo(f)
	}
	w.spoils.Store(0)
	w.lies.Store(0)
	w.carrierLife.Store(0)
	w.free.Store(plentyMemory)
	w.startDaemon()
	w.trace("all is well again")
	if w.seed/4%2 == 0 { // what is wrong on a screen is not overwritten
		w.quiet.Store(true)
	}
	close(w.healed)
	if w.seed%2 == 0 { // half of the worlds hear of it
		for _, m := range w.machines {
			m.tell(netmon.Changed)
		}
	}
	time.Sleep(settleTime)
	w.playQuiet()
}

// check checks that everybody is connected, and sees the truth.
func (w *world) check() {
	for _, a := range w.everyone() {
		a.mu.Lock()
		s, state, over, lostAccess := a.s, a.state, a.over || a.killed, a.lostAccess
		a.mu.Unlock()
		if over {
			continue
		}
		if lostAccess {
			w.failf("%s has lost its access, and does not know, %v after the last fault", a.name, 2*settleTime)
		}
		if s == nil && a.session.lives() {
			w.failf("%s is not attached to session %s, %v after the last fault", a.name, a.session.name, 2*settleTime)
		} else if s != nil && state > client.Live && a.session.lives() {
			w.failf("%s is %v, %v after the last fault", a.name, state, 2*settleTime)
		}
	}
	for _, s := range w.sessions {
		if s.pty() && s.lives() {
			w.checkTerminal(s)
		}
	}
}

// checkTerminal checks that all keys have arrived, that they are echoed, and that all clients show the same.
func (w *world) checkTerminal(s *session) {
	for _, a := range w.everyone() {
		if _, ok := a.typist(); ok && a.session == s {
			a.typeKey(a.current())
		}
	}
	time.Sleep(10 * time.Second)
	for _, a := range w.everyone() {
		if typed, ok := a.typist(); ok && a.session == s && s.script != "stops" {
			s.mu.Lock()
			took := s.took[a.name]
			s.mu.Unlock()
			if took != typed {
				w.failf("%s has typed %d keys, and the program has read %d", a.name, typed, took)
			}
		}
	}
	if s.script == "flood" || s.script == "stops" { // it may print at this moment
		return
	}
	truth := w.newActor(fmt.Sprintf("truth of %s", s.name), w.machines[0], s, wire.RoleWatch)
	w.running.Go(truth.run)
	time.Sleep(10 * time.Second)
	want := truth.view()
	for _, a := range w.everyone() {
		if a.session == s && a.current() != nil {
			if diff := differ(a.view(), want); diff != "" {
				w.failf("%s does not show what session %s has: %s", a.name, s.name, diff)
			}
		}
	}
}

// view returns what a client's terminal shows, a line for each row, without its scrollback: an attach brings only some of that.
func (a *actor) view() (lines []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.terminal.Dump()
	rows := append(d.Screen, d.Main...)
	d.Scrollback, d.Screen, d.Main = nil, nil, nil
	lines = append(lines, fmt.Sprintf("%+v", d))
	for i, row := range rows {
		row.Wrap = row.Wrap && i > 0 // the row above the first one is not shown
		line := ""
		for _, run := range row.Runs {
			line += fmt.Sprintf("%q%v", run[0], run[1:])
		}
		lines = append(lines, line+fmt.Sprint(row.Wrap))
	}
	return lines
}

// differ returns the first lines that differ.
func differ(a, b []string) string {
	for i := range max(len(a), len(b)) {
		x, y := "", ""
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("line %d:\n  %s\n  %s", i, x, y)
		}
	}
	return ""
}

// close ends the sessions, then the clients that are left, and checks how they end and that nothing is left.
func (w *world) close() {
	deaf := w.seed/8%2 == 0 // clients do not hear of the end at first
	if deaf {
		w.net.Do(func() {
			for _, m := range w.machines {
				for _, p := range m.ports {
					p.from.Set(netem.Config{Down: true})
				}
			}
		})
	}
	for _, s := range w.sessions {
		s.mu.Lock()
		p := s.program
		s.mu.Unlock()
		if p != nil && s.pty() {
			p.end()
		}
	}
	if deaf {
		time.Sleep(settleTime / 4)
		w.net.Do(func() {
			for _, m := range w.machines {
				for _, p := range m.ports {
					p.settle()
				}
			}
		})
	}
	time.Sleep(settleTime)
	for _, a := range w.everyone() {
		if a.present() && a.session.pty() {
			w.failf("%s has not ended, though its program has", a.name)
		}
		a.judge()
	}
	for _, a := range w.everyone() {
		a.slowDown(false)
		a.process.resume()
		a.mu.Lock()
		leave := a.leave
		a.mu.Unlock()
		if leave != nil {
			leave()
		}
	}
	close(w.closed)
	w.running.Wait()
	// Ends of TCP connections may be left at the server: of clients whose address is gone, which the kernel's keepalive ends.
	if n := w.net.Sockets(); n > len(serverAddrs) {
		w.failf("%d sockets are open, when all clients have ended: those of the server are %d", n, len(serverAddrs))
	}
	w.host.close()
	w.host.holders.Kill()
	w.host.holders.Wait()
	w.checkRecords()
	w.net.Close() // with what it sends again to clients whose address is gone
	w.checkLeft()
	for _, m := range w.machines {
		for _, p := range m.ports {
			w.sentPackets += p.to.Counters().Packets + p.from.Counters().Packets
		}
	}
}

// judge checks how a client has ended.
func (a *actor) judge() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.killed || !a.over || a.s == nil {
		return
	}
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	var displaced *client.DisplacedError
	var withdrawn *client.WithdrawnError
	switch {
	case errors.As(a.err, &displaced) || errors.As(a.err, &withdrawn):
		a.lost(a.err)
	case a.err == nil && a.status == int(s.status) && s.ended:
		a.checkCount()
	case errors.Is(a.err, syscall.ENOSPC) && a.left:
	case errors.Is(a.err, client.ErrGone) && s.lost:
	case errors.Is(a.err, client.ErrGone) && s.ended && slices.ContainsFunc(a.world.everyone(), func(b *actor) bool { return b != a && b.knowsEnd(s) }):
	case errors.Is(a.err, client.ErrLeft) && a.left:
	default:
		a.world.failf("%s at session %s (%s) ends with status %d, %v; the program: ended %v, status %d", a.name, s.name, s.script, a.status,
			a.err, s.ended, s.status)
	}
}

// checkCount checks that a client that has seen its program's end has got or missed each byte of the holder's log once.
// Gaps count changes of the size too, so the log may have more bytes than the program has printed.
func (a *actor) checkCount() {
	s, at := a.session, a.s.Offset()
	if at != s.logged && at != s.logged+s.exit { // if memory has changed the program's end, it is logged again
		a.world.failf("%s has counted %d bytes of the log of session %s, which has %d", a.name, at, s.name, s.logged)
	}
	if got := a.received + a.gaps; a.creates && (got < s.printed || got > at) {
		a.world.failf("%s has got %d bytes and was told that %d are lost, of %d, and %d in the log", a.name, a.received, a.gaps,
			s.printed, at)
	}
}

// knowsEnd reports whether the client may have told the holder that it knows the program's end: the session is over then.
func (a *actor) knowsEnd(s *session) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.session == s && !a.role.ReadOnly() && (a.killed || a.over && a.err == nil)
}

func (a *actor) tookOver(b *actor) bool {
	return a.session == b.session && a.role == wire.RoleWriter
}

func (w *world) isQuiet() bool { return w.quiet.Load() }

func (w *world) everyone() []*actor {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.actors)
}

func (w *world) client(name string) *actor {
	for _, a := range w.everyone() {
		if a.name == name {
			return a
		}
	}
	return nil
}

func (w *world) session(name string) *session {
	for _, s := range w.sessions {
		if s.name == name {
			return s
		}
	}
	return nil
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// failf records a violation.
func (w *world) failf(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	w.trace("VIOLATION %s", what)
	w.mu.Lock()
	defer w.mu.Unlock()
	at := time.Since(w.begun).Round(time.Millisecond)
	w.failures = append(w.failures, fmt.Sprintf("seed %d, step %d, after %v: %s", w.seed, w.steps, at, what))
}

// simulate plays the world of a seed, and returns it.
func simulate(t *testing.T, seed uint64, story func(string)) (w *world) {
	t.Helper()
	dir := t.TempDir()
	events, done := keepEvents(t, seed)
	defer func() { done(w) }()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(seed, dir)
		w.story, w.events = story, events
		w.populate()
		w.plan(time.Duration(1+w.rng.IntN(15)) * time.Minute)
		w.openPages()
		if *planFlag {
			for _, f := range w.faults {
				fmt.Println(f)
			}
			w.net.Close()
			return
		}
		without := strings.Split(*withoutFlag, ",")
		w.faults = slices.DeleteFunc(w.faults, func(f *fault) bool { return slices.Contains(without, strconv.Itoa(f.number)) })
		w.play()
	})
	for _, failure := range w.failures {
		t.Error(failure)
	}
	return w
}
