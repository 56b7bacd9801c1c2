package privsep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
)

// ChannelFD is the descriptor of the socket to the monitor in the network half.
const ChannelFD = 3

// A Process is the network half in a process of its own, which has no rights, no files and no
// programs. When it ends it is started again. It implements [Network].
type Process struct {
	host   *Host
	output io.Writer // gets the lines of its log
	args   []string
	uid    uint32
	gid    uint32
	root   string

	telling sync.Mutex // held while a process is told the state or a socket

	mu      sync.Mutex
	current *running      // or nil
	arrived chan struct{} // closed when current is set
	state   State
	sockets []*listeningSocket
}

// A running is a network process that runs.
type running struct {
	*channel
	networkCalls
}

// NewProcess returns a network half. Its log goes to output. Base is the directory of the daemon's sockets, and args
// are further arguments of the process.
func NewProcess(
	ctx context.Context, host *Host, names *account.NameService, base rundir.Base, output io.Writer, args ...string,
) (*Process, error) {
	uid, gid, err := networkIDs(ctx, names)
	if err != nil {
		return nil, err
	}
	if err := base.MakeSystem(); err != nil {
		return nil, err
	}
	root := base.System() + "/empty"
	if err := rundir.MakeSystemDir(root, 0o755); err != nil {
		return nil, fmt.Errorf("empty directory: %w", err)
	}
	p := newProcess(host)
	p.output, p.args, p.uid, p.gid, p.root = output, args, uid, gid, root
	return p, nil
}

func newProcess(host *Host) *Process {
	return &Process{host: host, arrived: make(chan struct{})}
}

// newRunning returns a process with the other end of a socket, which it owns. The caller runs its channel.
func (p *Process) newRunning(socket *net.UnixConn) *running {
	n := new(running)
	n.channel = newChannel(socket, false, p.answer)
	n.serve(p.tableFor(n))
	tableOf(&n.networkCalls).bind(n.ask)
	return n
}

func (p *Process) tableFor(n *running) table {
	calls := p.host.calls()
	calls.Ready = Done(func(ctx context.Context, _ *None) error { return p.ready(ctx, n) })
	return tableOf(calls)
}

// answer implements [handler]. What the process sends is taken for hostile.
func (p *Process) answer(call func() (any, error)) (answer any, send []int, err error) {
	err = p.host.Panics.Contain(p.host.Log, func() (err error) {
		if answer, err = call(); err != nil {
			return err
		}
		if carrying, ok := answer.(carrying); ok {
			send, err = p.handOver(carrying.carried())
		}
		return err
	})
	return answer, send, err
}

// ask implements [asker].
func (n *running) ask(ctx context.Context, k kind, request, answer any) error {
	var fds []int
	if passing, ok := request.(interface{ descriptors() []int }); ok {
		fds = passing.descriptors()
	}
	_, err := n.call(ctx, k, request, answer, fds...)
	return err
}

// Run starts the process, and starts it again when it has ended, until ctx ends.
func (p *Process) Run(ctx context.Context) error {
	return p.host.Restart(ctx, p.once)
}

// once starts the process, and serves it until it has ended.
func (p *Process) once(ctx context.Context) error {
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	n := p.newRunning(ours)
	cmd, log, err := p.start(theirs)
	theirs.Close()
	if err != nil {
		ours.Close()
		return err
	}
	defer p.host.Logins.Clear() // again: what was being answered may have added some
	var wg sync.WaitGroup
	wg.Go(func() { p.copyLog(log) })
	served := make(chan error, 1)
	wg.Go(func() { served <- n.run(context.WithoutCancel(ctx)) })
	exited := make(chan error, 1)
	wg.Go(func() { exited <- cmd.Wait() })
	watching, stop := context.WithCancel(ctx)
	wg.Go(func() { p.watch(watching, n) })
	defer wg.Wait()
	defer stop()
	defer p.host.Logins.Clear()
	select {
	case err = <-exited: // its calls end as its end of the channel is closed
	case err = <-served:
		err = errors.Join(err, end(cmd, exited))
	case <-ctx.Done():
		ours.CloseWrite()
		err = end(cmd, exited)
	}
	log.SetReadDeadline(time.Now().Add(lastWords))
	n.close() // before p.current is looked at: then no call of ready sets it again
	p.mu.Lock()
	if p.current == n {
		p.current, p.arrived = nil, make(chan struct{})
	}
	p.mu.Unlock()
	return err
}

// watch ends the channel to a process that does not answer, until ctx ends.
func (p *Process) watch(ctx context.Context, n *running) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		p.telling.Lock()
		p.mu.Lock()
		state := p.state
		p.mu.Unlock()
		tell(ctx, n, n.State, &state)
		p.telling.Unlock()
	}
}

// errReady is the error of a process that is ready twice, or ready and gone.
var errReady = errors.New("the network process is ready or gone already")

// ready tells a process that has started what it serves.
func (p *Process) ready(ctx context.Context, n *running) error {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	known, sockets, state := p.current == n, slices.Clone(p.sockets), p.state
	p.mu.Unlock()
	if known {
		return errReady
	}
	if err := tell(ctx, n, n.State, &state); err != nil {
		return err
	}
	for _, s := range sockets {
		if err := tell(ctx, n, n.Listen, s); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n.ended() {
		return errReady
	}
	p.current = n
	close(p.arrived)
	return nil
}
