package privsep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
)

const (
	// LinkCommand is the hidden command of qtd that connects this host to a hub.
	LinkCommand = "link"

	// A link that has ended is started again after leastLinkPause, twice as long each time that the hub has not accepted
	// it, up to mostLinkPause; in each case after a random part of that, but half: hosts of a hub that was started again
	// do not come at once.
	leastLinkPause, mostLinkPause = 2 * time.Second, 15 * time.Second

	// maxHandovers bounds the relayed connections that are being handed over: each has two descriptors meanwhile.
	maxHandovers = 64

	// relayBuffer is how many bytes the kernel keeps of a relayed connection in each direction, about.
	relayBuffer = 64 << 10
)

// linkNamespaces are those of the process of the hub, best first: it has the machine's network.
var linkNamespaces = []uintptr{unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS, unix.CLONE_NEWNS, 0}

// A Link is the process that connects this host to a hub, and has as few rights as the network process. It has one
// connection, and ends with it: then it is started again.
type Link struct {
	cell
	host *LinkHost
	last string // why the last one has ended, as logged
}

// NewLink returns a link. Its log goes to output. Base is the directory of the daemon's sockets. Of a daemon that is not
// root's, the process has the user id of the daemon.
func NewLink(
	ctx context.Context, host *LinkHost, names *account.NameService, base rundir.Base, output io.Writer, args ...string,
) (*Link, error) {
	l := &Link{host: host, cell: cell{command: LinkCommand, output: output, args: args, namespaces: []uintptr{0}}}
	if os.Geteuid() != 0 {
		return l, nil
	}
	network, _, err := networkIDs(ctx, names)
	if err != nil {
		return nil, err
	}
	if l.uid, l.gid, err = freeIDs(ctx, names, linkAccount, network); err != nil {
		return nil, err
	}
	l.namespaces = linkNamespaces
	l.root, err = emptyRoot(base)
	return l, err
}

// Run starts the process, and starts it again when it has ended, until ctx ends.
func (l *Link) Run(ctx context.Context) error {
	pause := leastLinkPause
	for {
		accepted, err := l.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if accepted {
			pause = leastLinkPause
		}
		if err != nil && err.Error() != l.last {
			l.last = err.Error()
			l.host.Log.Warn("this host is not reachable through the hub", "event", "hub", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, mostLinkPause)
	}
}

// once starts the process, and serves it until it has ended. It reports whether the hub has accepted the host.
func (l *Link) once(ctx context.Context) (accepted bool, err error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return false, err
	}
	s := &linkSession{link: l, turns: make(chan struct{}, maxHandovers)}
	c := s.channel(ours)
	cmd, log, err := l.start(theirs)
	theirs.Close()
	if err != nil {
		ours.Close()
		return false, err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { l.copyLog(log) })
	served := make(chan error, 1)
	wg.Go(func() { served <- c.run(context.WithoutCancel(ctx)) })
	exited := make(chan error, 1)
	wg.Go(func() { exited <- cmd.Wait() })
	select {
	case err = <-exited: // its calls end as its end of the channel is closed
	case <-served:
		err = end(cmd, exited)
	case <-ctx.Done():
		c.close()
		err = end(cmd, exited)
	}
	log.SetReadDeadline(time.Now().Add(lastWords))
	c.close()
	if reason := s.ended.Load(); reason != nil {
		err = errors.New(*reason)
	} else if err != nil {
		err = fmt.Errorf("qtd %s: %w", LinkCommand, err)
	}
	return s.accepted.Load(), err
}

// A linkSession is what the monitor knows of one process.
type linkSession struct {
	link     *Link
	turns    chan struct{} // of connections that are handed over
	proven   atomic.Bool
	accepted atomic.Bool
	ended    atomic.Pointer[string]
}

// answer implements [handler]. What the process sends is taken for hostile.
func (s *linkSession) answer(call func() (any, error)) (answer any, send []int, err error) {
	host := s.link.host
	err = host.Panics.Contain(host.Log, func() (err error) {
		if answer, err = call(); err != nil {
			return err
		}
		if t, ok := answer.(*Taken); ok {
			send = []int{t.fd}
		}
		return nil
	})
	return answer, send, err
}

// channel returns the monitor's end of the channel to the process.
func (s *linkSession) channel(socket *net.UnixConn) *channel {
	c := newChannel(socket, false, s.answer)
	c.serve(tableOf(s.calls()))
	return c
}

var errProvenTwice = errors.New("the process has asked for a second signature")

func (s *linkSession) calls() *LinkCalls {
	host := s.link.host
	return &LinkCalls{
		Setup: Told(func(context.Context) (*LinkSetup, error) { return &host.Setup, nil }),
		Prove: func(_ context.Context, r *HubLogin) (*HubProof, error) {
			if s.proven.Swap(true) {
				return nil, errProvenTwice
			}
			return host.Prove(r)
		},
		Ready: Done(func(context.Context, *None) error {
			if !s.accepted.Swap(true) {
				s.link.last = ""
				host.Log.Info("this host is reachable through the hub", "event", "hub", "hub", host.Setup.URL, "name", host.Setup.Name)
			}
			return nil
		}),
		Ended: Done(func(_ context.Context, e *LinkEnd) error { s.ended.Store(&e.Text); return nil }),
		Take: func(ctx context.Context, caller *Caller) (*Taken, error) {
			select {
			case s.turns <- struct{}{}:
				defer func() { <-s.turns }()
				return host.take(ctx, *caller)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

// take makes a connection, and gives its far end to the network half.
func (h *LinkHost) take(ctx context.Context, caller Caller) (*Taken, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, relayBuffer)
	}
	file := os.NewFile(uintptr(fds[1]), "relayed")
	far, err := net.FileConn(file)
	if err = errors.Join(err, file.Close()); err != nil {
		unix.Close(fds[0])
		return nil, err
	}
	h.Relay(ctx, far, caller)
	return &Taken{fd: fds[0]}, nil
}

// A Linked is the monitor of the process that connects this host to a hub, as that has it.
type Linked struct {
	LinkCalls
	channel *channel
}

// InheritedLink returns the monitor that has started this process.
func InheritedLink() (*Linked, error) {
	socket, err := socketOf(os.NewFile(ChannelFD, "monitor"))
	if err != nil {
		return nil, fmt.Errorf("the daemon starts this command: %w", err)
	}
	return newLinked(socket), nil
}

// newLinked returns the monitor at the other end of a socket, which it owns.
func newLinked(socket *net.UnixConn) *Linked {
	l := &Linked{channel: newChannel(socket, true, func(answer func() (any, error)) (any, []int, error) {
		a, err := answer()
		return a, nil, err
	})}
	tableOf(&l.LinkCalls).bind(func(ctx context.Context, k kind, request, answer any) error {
		files, err := l.channel.call(ctx, k, request, answer)
		if taker, ok := answer.(fileTaker); ok && err == nil {
			return taker.takeFiles(files)
		}
		closeFiles(files)
		return err
	})
	return l
}

// Run brings the answers of the monitor, until that is gone.
func (l *Linked) Run(ctx context.Context) error { return l.channel.run(ctx) }

// Close ends the channel to the monitor, and so Run.
func (l *Linked) Close() { l.channel.close() }
