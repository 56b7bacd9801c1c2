//go:build linux || darwin

package agent

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// BaseVariable is the variable of the environment in which `qtd forward` gets the base of ListenFor.
const BaseVariable = "QUICTERM_BASE"

const (
	ofSession = ".agent" // behind the id of a session in the name of its socket
	ofClient  = ".offer" // behind what is derived from an AgentID

	// acceptPause is the time before a listener accepts again after an error, for instance if descriptors run out.
	acceptPause = 100 * time.Millisecond

	// proofTime bounds how long what has connected may take to prove that it knows an id: a holder sends that at once.
	proofTime = 2 * time.Second

	// maxUnproven bounds the connections that have not. More wait in the kernel.
	maxUnproven = 64
)

// An Agent is that of a session.
type Agent struct {
	*switchboard
	Socket *socket.Socket
	Path   string // for SSH_AUTH_SOCK
}

// Listen makes the socket of a session's agent, in the directory of this account. The caller calls Serve and
// Close.
func Listen(base rundir.Base, id wire.SessionID) (*Agent, error) {
	base, dir, err := own(base)
	if err != nil {
		return nil, err
	}
	sweep(dir)
	name := id.String() + ofSession
	s, err := socket.Listen(base, name)
	if err != nil {
		return nil, err
	}
	a := &Agent{Socket: s, Path: filepath.Join(dir, name)}
	a.switchboard = newSwitchboard(func(id wire.AgentID) (net.Conn, error) {
		c, err := rundir.Dial(filepath.Join(dir, nameOf(id)), uint32(os.Geteuid()))
		if err != nil {
			return nil, err
		}
		if _, err := c.Write(proof(id, os.Getpid())); err != nil {
			c.Close()
			return nil, err
		}
		return c, nil
	})
	return a, nil
}

// sweepNames bounds the names that are looked at for sockets to remove.
const sweepNames = 250

// sweep removes sockets of agents whose process was killed. What listens does not notice it.
func sweep(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(sweepNames)
	for _, name := range names {
		if ext := filepath.Ext(name); ext != ofSession && ext != ofClient {
			continue
		}
		path := filepath.Join(dir, name)
		c, err := net.Dial("unixgram", path) // a socket that lives is of another type
		if err == nil {
			c.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			os.Remove(path)
		}
	}
}

// Close closes the socket, if there is an agent.
func (a *Agent) Close() {
	if a != nil {
		a.Socket.Close()
	}
}

// Serve serves the programs that connect, until Close. Their connections have ended then.
func (a *Agent) Serve() {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer a.close()
	accept(a.Socket, func(c *net.UnixConn) { wg.Go(func() { a.serve(c) }) })
}

// accept takes connections of this account, and of root, who may be the account after sudo, until the socket is closed.
func accept(s *socket.Socket, take func(*net.UnixConn)) {
	for {
		c, err := s.Accept()
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		if uid, err := rundir.PeerUID(c); err == nil && (uid == 0 || uid == uint32(os.Geteuid())) {
			take(c)
		} else {
			c.Close()
		}
	}
}

// ListenFor listens where the sessions of an account look for the agent of a client, and accepts connections of those
// alone. Programs of the account find the socket too: they would use the agent also while the client is not at the keyboard.
func ListenFor(base rundir.Base, id wire.AgentID) (net.Listener, error) {
	base, dir, err := own(base)
	if err != nil {
		return nil, err
	}
	s, err := socket.Listen(base, nameOf(id))
	if err != nil {
		return nil, err
	}
	l := &listener{Socket: s, id: id, path: filepath.Join(dir, nameOf(id)), proven: make(chan net.Conn),
		places: make(chan struct{}, maxUnproven)}
	l.life, l.end = context.WithCancel(context.Background())
	l.work.Go(func() { accept(s, l.take) })
	return l, nil
}

// nameOf returns the name of the socket of a client, which does not show the id.
func nameOf(id wire.AgentID) string {
	hash := sha256.Sum256(id[:])
	return hex.EncodeToString(hash[:len(id)]) + ofClient
}

// proof returns what a process sends first, which knows an id. Another process, to which it has connected by mistake,
// cannot use it: the kernel says who connects.
func proof(id wire.AgentID, pid int) []byte {
	mac := hmac.New(sha256.New, id[:])
	mac.Write(binary.BigEndian.AppendUint32(nil, uint32(pid)))
	return mac.Sum(nil)
}

// own returns the directory in which this account makes its sockets. It can make none in a base that root's daemon has
// replaced.
func own(base rundir.Base) (rundir.Base, string, error) {
	if dir, err := base.Make(); err == nil {
		return base, dir, nil
	}
	dir, err := rundir.Base("").Make()
	return "", dir, err
}

// A listener accepts connections of processes that know an id. It implements [net.Listener]: Close waits until it has
// closed those that have not proved it.
type listener struct {
	*socket.Socket
	id     wire.AgentID
	path   string
	proven chan net.Conn
	places chan struct{} // of connections that nobody has accepted
	life   context.Context
	end    context.CancelFunc
	work   sync.WaitGroup
}

// take has a connection accepted when it has proved that it knows the id. It blocks while there are many that have not.
func (l *listener) take(c *net.UnixConn) {
	select {
	case l.places <- struct{}{}:
	case <-l.life.Done():
		c.Close()
		return
	}
	l.work.Go(func() {
		defer func() { <-l.places }()
		defer context.AfterFunc(l.life, func() { c.Close() })()
		c.SetDeadline(time.Now().Add(proofTime))
		pid, err := rundir.PeerPID(c)
		want := proof(l.id, pid)
		got := make([]byte, len(want))
		if err == nil {
			_, err = io.ReadFull(c, got)
		}
		if err != nil || !hmac.Equal(got, want) {
			c.Close()
			return
		}
		c.SetDeadline(time.Time{})
		select {
		case l.proven <- c:
		case <-l.life.Done():
		}
	})
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.proven:
		return c, nil
	case <-l.life.Done():
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.end()
	err := l.Socket.Close()
	l.work.Wait()
	return err
}

func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }
