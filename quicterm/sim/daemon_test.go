//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/monitor"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/server"
)

// A half is one of the daemon's two processes as the kernel sees it: it can be killed, and then nothing that its
// goroutines still do has an effect.
type half struct {
	ctx     context.Context
	cancel  context.CancelFunc
	dead    chan struct{} // closed at the instant of its end
	running sync.WaitGroup

	mu     sync.Mutex
	scarce bool // it gets no more descriptors
	open   map[io.Closer]bool
}

func newHalf() *half {
	h := &half{dead: make(chan struct{}), open: make(map[io.Closer]bool)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

var errKilled = errors.New("the process was killed")

// spawn runs a goroutine of the process, and reports whether that lives.
func (h *half) spawn(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		return false
	}
	h.running.Go(f)
	return true
}

func (h *half) lives() bool {
	select {
	case <-h.dead:
		return false
	default:
		return true
	}
}

// keep gives the process a descriptor, or closes it.
func (h *half) keep(c io.Closer) error {
	h.mu.Lock()
	var err error
	switch {
	case h.open == nil:
		err = errKilled
	case h.scarce:
		err = syscall.EMFILE
	default:
		h.open[c] = true
	}
	h.mu.Unlock()
	if err != nil {
		c.Close()
	}
	return err
}

func (h *half) forget(c io.Closer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, c)
}

func (h *half) setScarce(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.scarce = on
}

// kill ends the process as SIGKILL does: the kernel closes its descriptors. Its goroutines end soon.
func (h *half) kill() {
	h.mu.Lock()
	open := h.open
	if open != nil {
		close(h.dead)
	}
	h.open = nil
	h.mu.Unlock()
	for c := range open {
		c.Close()
	}
	h.cancel()
}

// end lets the process end by itself, as after SIGTERM.
func (h *half) end() {
	h.cancel()
	h.running.Wait()
	h.kill()
}

// A monitorHalf is the process with rights: the real monitor, over holders in memory.
type monitorHalf struct {
	*half
	*monitor.Monitor
	network *network
	disk    string // its state_dir
}

// A network is what a monitor has of its network processes. It stands for privsep.Process, which starts programs and
// passes descriptors by the kernel: the calls, their encoding and the rule by which a process is started again are the
// real ones.
type network struct {
	host    *host
	monitor *monitorHalf
	privs   *privsep.Host

	mu      sync.Mutex
	current *networkHalf // nil while none runs
	state   privsep.State
}

// A networkHalf is the process that talks to clients: the real server.
type networkHalf struct {
	*half
	*server.Server
}

// newMonitor starts the daemon's process with rights. Its network process follows.
func (h *host) newMonitor(disk string) (*monitorHalf, error) {
	m := &monitorHalf{half: newHalf(), disk: disk}
	settings := *h.settings
	settings.StateDir = disk
	var err error
	m.Monitor, err = monitor.New(monitor.Config{
		Settings: &settings, Granted: true, Holders: &heldBy{h.holders, m.half}, Log: h.world.logOf("monitor"),
	})
	if err != nil {
		return nil, err
	}
	m.network = &network{host: h, monitor: m, privs: m.Host()}
	m.spawn(func() {
		m.Run(m.ctx, m.network)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.monitor == m { // nobody has used it for long
			h.monitor = nil
		}
	})
	return m, nil
}

// Run implements [privsep.Network].
func (n *network) Run(ctx context.Context) error { return n.privs.Restart(ctx, n.once) }

// once starts a network process, and waits for its end.
func (n *network) once(ctx context.Context) error {
	p := &networkHalf{half: newHalf()}
	calls := n.privs.InMemory(n.exchange(p.half))
	setup, err := calls.Setup(ctx, new(privsep.None))
	if err != nil {
		return err
	}
	setup.Apart = true
	if p.Server, err = server.NewServer(calls, setup, n.host.world.logOf("network process")); err != nil {
		return err
	}
	n.mu.Lock()
	p.Update(n.state)
	n.current = p
	n.mu.Unlock()
	n.host.collect(p.half)
	p.spawn(func() { p.Run(p.ctx) })
	for _, s := range n.host.sockets {
		socket, listener := s.opened(p.half)
		p.spawn(func() { p.ServeQUIC(p.ctx, socket) })
		p.spawn(func() { p.ServeTCP(p.ctx, listener) })
	}
	select {
	case <-p.dead:
		err = errKilled
	case <-ctx.Done(): // it is told, or sees that the monitor is gone
		p.end()
	}
	n.mu.Lock()
	n.current = nil
	n.mu.Unlock()
	n.privs.Logins.Clear()
	return err
}

// exchange passes the calls of a network process on to the monitor.
func (n *network) exchange(p *half) privsep.Exchange {
	return func(ctx context.Context, answer func(context.Context) *privsep.Reply) (*privsep.Reply, error) {
		answered := make(chan *privsep.Reply)
		n.monitor.spawn(func() {
			r := answer(ctx)
			select {
			case answered <- r:
			case <-p.dead:
				if r.Carrier != nil { // it was under way to nobody
					r.Carrier.Close()
				}
			case <-n.monitor.dead:
			}
		})
		select {
		case r := <-answered:
			if e, ok := r.Carrier.(*end); ok {
				if err := e.give(p); err != nil {
					return nil, err
				}
			}
			return r, nil
		case <-p.dead:
		case <-n.monitor.dead:
		}
		return nil, errKilled
	}
}

// Update implements [privsep.Network].
func (n *network) Update(state privsep.State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state = state
	if n.current != nil {
		n.current.Update(state)
	}
}

// Serve implements [privsep.Network]. The host has the sockets.
func (n *network) Serve(context.Context, privsep.Listener) error { return errors.ErrUnsupported }

// ServeLocal implements [privsep.Network]. There are no clients over ssh.
func (n *network) ServeLocal(_ context.Context, c net.Conn, _ *privsep.Local) { c.Close() }

func (n *network) running() *networkHalf {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}

// Clients implements [privsep.Network].
func (n *network) Clients(ctx context.Context) (*privsep.Clients, error) {
	if p := n.running(); p != nil {
		return p.Clients(ctx)
	}
	return nil, errKilled
}

// Metrics implements [privsep.Network].
func (n *network) Metrics(ctx context.Context) ([]byte, error) {
	if p := n.running(); p != nil {
		return p.Metrics(ctx)
	}
	return nil, errKilled
}

// copyDisk returns a directory with the files of one as they are now.
func copyDisk(from string) (string, error) {
	to, err := os.MkdirTemp(filepath.Dir(from), "disk")
	if err == nil {
		err = os.Chmod(to, 0o700)
	}
	if err == nil {
		err = os.CopyFS(to, os.DirFS(from))
	}
	return to, err
}
