//go:build linux || darwin

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A host is the server's machine: a daemon in two halves that may be down, its sockets, and holders, which outlive it.
type host struct {
	world    *world
	settings *configs.Server
	holders  *holders
	keeps    bool // the service manager keeps the sockets while no daemon runs
	dir      string

	mu      sync.Mutex
	disk    string       // the state_dir of the next monitor
	monitor *monitorHalf // nil while the daemon is down
	sockets []*serverSocket
	halves  []*half // all that there were
}

func newHost(w *world, dir string) *host {
	h := &host{world: w, settings: configs.DefaultServer(), keeps: w.seed/2%2 == 0, dir: dir}
	h.holders = &holders{
		Holders: holdertest.New(func(l *wire.Launch) holder.Program { return w.program(l) }), host: h,
		ends: make(map[wire.SessionID]map[*end]bool), names: make(map[wire.SessionID]string), proofs: make(map[[32]byte]bool),
	}
	h.holders.Log, h.holders.Free = processLog{world: w, who: "holder", holder: true}, w.readMemory
	h.holders.Change = func(l *wire.Launch) {
		h.holders.mu.Lock()
		h.holders.names[l.ID] = l.Name
		h.holders.mu.Unlock()
		s := w.session(l.Name)
		if s != nil && s.ring != 0 {
			l.Buffer = s.ring
		}
		if s != nil && s.records() != "" {
			l.Persist = &wire.Persist{Dir: s.records()}
		}
	}
	return h
}

// start starts a daemon with the keys of the last one.
func (h *host) start() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.disk == "" {
		h.disk = filepath.Join(h.dir, "disk")
		if err := os.Mkdir(h.disk, 0o700); err != nil {
			return err
		}
	}
	if !h.keeps {
		h.closeSocketsLocked() // a network process may still be about to end
	}
	for _, addr := range serverAddrs[len(h.sockets):] {
		h.sockets = append(h.sockets, h.world.newServerSocket(addr))
	}
	m, err := h.newMonitor(h.disk)
	if err != nil {
		return err
	}
	h.monitor = m
	h.halves = append(h.halves, m.half)
	return nil
}

func (h *host) isUp() bool { return h.current() != nil }

func (h *host) current() *monitorHalf {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.monitor
}

// down ends the daemon: end ends its monitor.
func (h *host) down(end func(*monitorHalf)) {
	h.mu.Lock()
	m := h.monitor
	h.monitor = nil
	h.mu.Unlock()
	if m == nil {
		return
	}
	end(m)
	if !h.keeps {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.closeSocketsLocked()
	}
}

// kill kills both processes of the daemon at once.
func (h *host) kill() {
	h.down(func(m *monitorHalf) {
		if p := m.network.running(); p != nil {
			p.kill()
		}
		h.killed(m)
	})
}

// killed kills a monitor. What it does not write any more is on no disk.
func (h *host) killed(m *monitorHalf) {
	disk, err := copyDisk(m.disk)
	if err != nil {
		h.world.failf("the disk of the server's machine: %v", err)
		return
	}
	h.mu.Lock()
	h.disk = disk
	h.mu.Unlock()
	m.half.kill()
}

// killMonitor kills the half of the daemon that has the rights. The other one notices, and ends.
func (h *host) killMonitor() {
	m := h.current()
	h.mu.Lock()
	h.monitor = nil
	h.mu.Unlock()
	if m != nil {
		h.killed(m)
	}
}

// killNetwork kills the half of the daemon that talks to clients. The monitor starts another one.
func (h *host) killNetwork() {
	if m := h.current(); m != nil {
		if p := m.network.running(); p != nil {
			p.kill()
		}
	}
}

// stop ends the daemon as SIGTERM does.
func (h *host) stop() { h.down(func(m *monitorHalf) { m.half.end() }) }

// close ends the machine but for its holders.
func (h *host) close() {
	h.stop()
	h.mu.Lock()
	h.closeSocketsLocked()
	halves := h.halves
	h.mu.Unlock()
	for _, one := range halves {
		one.running.Wait()
	}
}

// collect makes close wait for a process.
func (h *host) collect(one *half) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.halves = append(h.halves, one)
}

func (h *host) closeSocketsLocked() {
	for _, s := range h.sockets {
		s.close()
	}
	h.sockets = nil
}

// token returns a token for a login, or nil while the daemon is down.
func (h *host) token() []byte {
	m := h.current()
	if m == nil {
		return nil
	}
	token, err := m.IssueToken(uint32(os.Geteuid()))
	if err != nil {
		return nil
	}
	return token
}

// holders are the processes of the sessions.
type holders struct {
	*holdertest.Holders
	host *host

	mu     sync.Mutex
	names  map[wire.SessionID]string
	ends   map[wire.SessionID]map[*end]bool
	passed map[direction][]passed // for a relay that lies
	// proofs are those of resumes that holders have accepted.
	proofs map[[32]byte]bool
}

// heldBy are the holders as one process of the daemon reaches them.
type heldBy struct {
	*holders
	half *half
}

// reach returns why the process cannot connect to a holder, or nil.
func (h *heldBy) reach() error {
	h.half.mu.Lock()
	defer h.half.mu.Unlock()
	switch {
	case h.half.open == nil:
		return errKilled
	case h.half.scarce:
		return syscall.EMFILE
	}
	return nil
}

// Ask implements [processes.Holders].
func (h *heldBy) Ask(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message,
) (wire.Message, error) {
	if err := h.reach(); err != nil {
		return wire.Message{}, err
	}
	return h.holders.Ask(ctx, uid, id, open, m)
}

// Await implements [processes.Holders].
func (h *heldBy) Await(ctx context.Context, uid uint32, id wire.SessionID) (wire.Message, error) {
	if err := h.reach(); err != nil {
		return wire.Message{}, err
	}
	return h.holders.Await(ctx, uid, id)
}

// Start implements [processes.Holders].
func (h *heldBy) Start(ctx context.Context, a *account.Account, l *wire.Launch) error {
	if err := h.reach(); err != nil {
		return err
	}
	return h.holders.Start(ctx, a, l)
}

// Carry implements [processes.Holders]. The kernel closes the connection with either process.
func (h *heldBy) Carry(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, request wire.Message, datagrams bool,
) (wire.Message, carrier.Carrier, error) {
	if err := h.reach(); err != nil {
		return wire.Message{}, nil, err
	}
	answer, c, err := h.Holders.Carry(ctx, uid, id, open, request, datagrams)
	if c == nil {
		return answer, c, err
	}
	e := &end{Carrier: c, holders: h.holders, id: id, owner: h.half, lane: "frames by stream"}
	if !datagrams {
		e.lane = "frames by TCP"
	}
	if request.Type == wire.TypeResume && answer.Type == wire.TypeResumed {
		e.sealed = true
		h.checkProof(request)
	}
	if answer.Type == wire.TypeAttached {
		h.recordAttached(id, request, answer)
	}
	h.mu.Lock()
	if h.ends[id] == nil {
		h.ends[id] = make(map[*end]bool)
	}
	h.ends[id][e] = true
	h.mu.Unlock()
	if err := h.half.keep(e); err != nil {
		return wire.Message{}, nil, err
	}
	if life := h.host.world.carrierLife.Load(); life > 0 {
		time.AfterFunc(time.Duration(life), func() {
			h.host.world.reached("carrier ended at once")
			e.Close()
		})
	}
	return answer, e, err
}

// checkProof checks that no proof of a resume counts twice.
func (h *holders) checkProof(request wire.Message) {
	r := new(wire.Resume)
	if err := request.Decode(r); err != nil {
		h.host.world.failf("a holder has accepted a resume that cannot be read: %v", err)
		return
	}
	h.mu.Lock()
	used := h.proofs[r.Proof]
	h.proofs[r.Proof] = true
	h.mu.Unlock()
	if used {
		h.host.world.failf("a holder has accepted a proof, number %d, twice", r.N)
	}
}

// recordAttached records whom a client displaces that has attached. Answers of two may come in another order than that in
// which the holder has numbered them.
func (h *holders) recordAttached(id wire.SessionID, request, answer wire.Message) {
	var asked wire.Attach
	var attached wire.Attached
	if err := errors.Join(request.Decode(&asked), answer.Decode(&attached)); err != nil {
		h.host.world.failf("an attach cannot be read: %v", err)
		return
	}
	h.mu.Lock()
	s := h.host.world.session(h.names[id])
	h.mu.Unlock()
	if s == nil || asked.Role.ReadOnly() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers[asked.Instance], s.resized = attached.Number, len(s.log)
	if asked.Role == wire.RoleWriter {
		s.lastWriter = max(s.lastWriter, attached.Number)
	}
	for instance, number := range s.numbers {
		if _, known := s.displaced[instance]; !known && number < s.lastWriter {
			s.displaced[instance] = time.Now()
		}
	}
}

// kill ends the holder of a session as SIGKILL does.
func (h *holders) kill(id wire.SessionID) {
	h.mu.Lock()
	ends := h.ends[id]
	delete(h.ends, id)
	h.mu.Unlock()
	for e := range ends {
		e.Close()
	}
	h.Lose(id)
}

// killNamed ends the holder of the session with a name.
func (h *holders) killNamed(name string) {
	for _, id := range h.Sessions(0) {
		h.mu.Lock()
		is := h.names[id] == name
		h.mu.Unlock()
		if is {
			h.kill(id)
		}
	}
}

// An end is the daemon's end of a connection with a holder.
type end struct {
	carrier.Carrier
	holders *holders
	id      wire.SessionID
	owner   *half // the process that has it
	sealed  bool
	lane    string // by which what is written goes on
	// lastNonce is one more than the number of the last sealed datagram to the client. It is a nonce of a key that belongs
	// to this carrier alone.
	lastNonce uint64
}

// checkNonce checks that the number of a sealed datagram of the holder has not been used. A carrier of one machine keeps
// their order.
func (e *end) checkNonce(b []byte) {
	if !e.sealed || len(b) < 8 {
		return
	}
	n := binary.BigEndian.Uint64(b)
	if n < e.lastNonce {
		e.holders.host.world.failf("a nonce, %d, is used twice", n)
	}
	e.lastNonce = n + 1
}

func (e *end) Close() error {
	e.holders.mu.Lock()
	delete(e.holders.ends[e.id], e)
	owner := e.owner
	e.holders.mu.Unlock()
	owner.forget(e)
	return e.Carrier.Close()
}

// give hands the connection over to another process.
func (e *end) give(to *half) error {
	e.holders.mu.Lock()
	from := e.owner
	e.owner = to
	e.holders.mu.Unlock()
	from.forget(e)
	return to.keep(e)
}

// spoil changes a bit, as bad memory in the relay does, while a fault says so.
func (e *end) spoil(b []byte) {
	if share := e.holders.host.world.spoils.Load(); len(b) > 0 && share > 0 && rand.Int64N(1e6) < share {
		e.holders.host.world.reached("bit changed in the relay")
		b[rand.IntN(len(b))] ^= 1 << rand.IntN(8)
	}
}

func (e *end) Read(b []byte) (int, error) {
	n, err := e.Carrier.Read(b)
	e.holders.host.world.reached(e.lane)
	e.spoil(b[:n])
	return n, err
}

func (e *end) ReceiveDatagram() ([]byte, error) {
	b, err := e.Carrier.ReceiveDatagram()
	e.holders.host.world.reached("frames by datagrams")
	e.checkNonce(b)
	if old := e.old(b, false); old != nil {
		return old, err
	}
	e.spoil(b)
	return e.cut(b), err
}

func (e *end) Write(b []byte) (int, error) {
	n := len(b)
	b = append([]byte(nil), b...)
	e.spoil(b)
	if _, err := e.Carrier.Write(e.cut(b)); err != nil {
		return 0, err
	}
	return n, nil
}

func (e *end) SendDatagram(b []byte) error {
	if old := e.old(b, true); old != nil {
		e.Carrier.SendDatagram(old)
	}
	b = append([]byte(nil), b...)
	e.spoil(b)
	return e.Carrier.SendDatagram(e.cut(b))
}
