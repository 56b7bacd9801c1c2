//go:build linux || darwin

package main

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/server"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A host is the server's machine: a daemon that may be down, and holders, which outlive it.
type host struct {
	world    *world
	settings *configs.Server
	holders  *holders

	mu     sync.Mutex
	daemon *daemon // nil while it is down
}

// A daemon is one process of qtd.
type daemon struct {
	*server.Daemon
	killed  atomic.Bool
	sockets []interface{ Close() error }
	cancel  context.CancelFunc
	serving sync.WaitGroup

	mu   sync.Mutex
	open map[interface{ Close() error }]bool // connections that the kernel closes with the process
}

func newHost(w *world, dir string) *host {
	settings := configs.DefaultServer()
	settings.StateDir = dir
	h := &host{world: w, settings: settings}
	h.holders = &holders{Holders: holdertest.New(func(l *wire.Launch) holder.Program { return w.program(l) }), host: h, ends: make(map[wire.SessionID]map[*end]bool),
		names: make(map[wire.SessionID]string), proofs: make(map[[32]byte]bool)}
	h.holders.Change = func(l *wire.Launch) {
		h.holders.mu.Lock()
		h.holders.names[l.ID] = l.Name
		h.holders.mu.Unlock()
		if s := w.session(l.Name); s != nil && s.ring != 0 {
			l.Buffer = s.ring
		}
	}
	return h
}

// start starts a daemon with the keys of the last one.
func (h *host) start() error {
	s, err := server.New(server.Config{Settings: h.settings, Granted: true, Holders: h.holders})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &daemon{Daemon: s, cancel: cancel, open: make(map[interface{ Close() error }]bool)}
	var sockets []net.PacketConn
	for _, addr := range serverAddrs {
		socket, listener := h.world.net.Listen(addr), h.world.net.ListenStream(addr)
		sockets = append(sockets, socket)
		d.sockets = append(d.sockets, socket, listener)
		d.serving.Go(func() { s.ServeTCP(ctx, accepting{listener, d}) })
	}
	d.serving.Go(func() { s.Serve(ctx, sockets...) })
	h.mu.Lock()
	h.daemon = d
	h.mu.Unlock()
	return nil
}

func (h *host) isUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.daemon != nil
}

// kill ends the daemon as SIGKILL does: the kernel closes what it has open, and it says nothing more.
func (h *host) kill() {
	h.mu.Lock()
	d := h.daemon
	h.daemon = nil
	h.mu.Unlock()
	if d == nil {
		return
	}
	d.killed.Store(true)
	for _, c := range d.sockets {
		c.Close()
	}
	d.mu.Lock()
	open := d.open
	d.open = nil
	d.mu.Unlock()
	for c := range open {
		c.Close()
	}
	d.cancel()
	d.serving.Wait()
}

// stop ends the daemon as SIGTERM does.
func (h *host) stop() {
	h.mu.Lock()
	d := h.daemon
	h.daemon = nil
	h.mu.Unlock()
	if d == nil {
		return
	}
	d.cancel()
	d.serving.Wait()
	for _, c := range d.sockets {
		c.Close()
	}
}

// token returns a token for a login, or nil while the daemon is down.
func (h *host) token() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.daemon == nil {
		return nil
	}
	token, err := h.daemon.IssueToken(uint32(os.Geteuid()))
	if err != nil {
		return nil
	}
	return token
}

// keep records a connection of a daemon, unless that was killed.
func (d *daemon) keep(c interface{ Close() error }) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		c.Close()
		return false
	}
	d.open[c] = true
	return true
}

func (d *daemon) forget(c interface{ Close() error }) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, c)
}

// accepting records the connections that a daemon accepts.
type accepting struct {
	net.Listener
	daemon *daemon
}

func (a accepting) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	kept := &accepted{c, a.daemon}
	if !a.daemon.keep(kept) {
		return nil, net.ErrClosed
	}
	return kept, nil
}

type accepted struct {
	net.Conn
	daemon *daemon
}

func (a *accepted) Close() error {
	a.daemon.forget(a)
	return a.Conn.Close()
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

// Carry connects the daemon with a holder. The kernel closes the connection with either process.
func (h *holders) Carry(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, request wire.Message, datagrams bool,
) (wire.Message, carrier.Carrier, error) {
	h.host.mu.Lock()
	d := h.host.daemon
	h.host.mu.Unlock()
	answer, c, err := h.Holders.Carry(ctx, uid, id, open, request, datagrams)
	if c == nil {
		return answer, c, err
	}
	e := &end{Carrier: c, holders: h, id: id, daemon: d, lane: "frames by stream"}
	if !datagrams {
		e.lane = "frames by TCP"
	}
	if request.Type == wire.TypeResume && answer.Type == wire.TypeResumed {
		e.sealed = true
		h.checkProof(request)
	}
	h.mu.Lock()
	if h.ends[id] == nil {
		h.ends[id] = make(map[*end]bool)
	}
	h.ends[id][e] = true
	h.mu.Unlock()
	if d == nil || !d.keep(e) {
		e.Close()
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
	daemon  *daemon
	sealed  bool
	lane    string // by which what is written goes on
	// lastNonce is one more than the number of the last sealed datagram to the client. It is a nonce of a key that belongs to
	// this carrier alone.
	lastNonce uint64
}

// checkNonce checks that the number of a sealed datagram of the holder has not been used. A carrier of one machine keeps their order.
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
	e.holders.mu.Unlock()
	if e.daemon != nil {
		e.daemon.forget(e)
	}
	return e.Carrier.Close()
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
