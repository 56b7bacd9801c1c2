// Package sshlogin logs in to a host by ssh and runs a command there, on machines without an
// ssh program.
//
// It promises:
//   - A server whose key is not accepted gets nothing of the user: no name, key or password.
//   - What a server says to the user is printable, names the server, and is bounded.
//   - The time that a server has for a login is bounded; the user's time is not counted.
//
// It does less than ssh: no forwarding, no GSSAPI, no host-based login, no security key that
// is not in an agent.
package sshlogin

import (
	"context"
	"io"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Login is a way into an account of a host. It is not changed by its methods, which may be
// called at once.
type Login struct {
	Host    string // as people call it
	Address string // host:port
	Network string // "tcp", "tcp4" or "tcp6"
	User    string

	// Jump is the login to the host that connects to the address. If it is nil, Dial does, and
	// if that is nil too, a net.Dialer.
	Jump *Login
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// CheckHost returns why the server's key, or certificate, is not accepted, or nil.
	CheckHost  func(ssh.PublicKey) error
	Algorithms Algorithms

	Keys    []*auth.UserKey // and certificates, in the order to offer them
	Methods []string        // to use, best first; nil for all, in the order of ssh
	Prompts int             // how often the user is asked for a password; 0 for 3

	// Asker asks the user. If it is nil, only keys are used for which nobody is asked.
	Asker Asker
	// Errors gets what the command writes to standard error, as it is. It may be nil.
	Errors io.Writer
	// Timeout bounds the time that each server has for the login; 0 for a minute.
	Timeout time.Duration
}

// Algorithms lists algorithms as ssh names them, best first. An empty list stands for those
// that are secure.
type Algorithms struct {
	HostKeys, Ciphers, KeyExchanges, MACs []string
	// UserKeys says which keys may sign, and how. RSA keys never sign with SHA-1.
	UserKeys []string
}

// usualTimeout is for slow networks: a login takes about ten round trips, some of them with
// lost packets.
const usualTimeout = time.Minute

// Run logs in and starts a command. Reads from the stream are of its standard output, writes go
// to its standard input. Close ends the command and the connection. Run blocks until the command
// has been started, or until ctx ends; after that ctx has no effect.
//
// An error of CheckHost, or of the Asker, is in the chain of Run's error. Another reason for
// which the server lets nobody in is a *DeniedError.
func (l *Login) Run(ctx context.Context, command string) (io.ReadWriteCloser, error) {
	conn, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	watch := newWatchdog(l.timeout(), func() { conn.Close() })
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	s, err := start(conn, command, l.Errors)
	if err = l.outcome(ctx, err, watch.stop(), !stop()); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// outcome returns the error of a step: another one if it was late or canceled.
func (l *Login) outcome(ctx context.Context, err error, late, canceled bool) error {
	switch {
	case canceled:
		return context.Cause(ctx)
	case late:
		return l.explain(errTimeout)
	case err != nil:
		return l.explain(err)
	}
	return nil
}

// dial logs in.
func (l *Login) dial(ctx context.Context) (*connection, error) {
	raw, jump, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	watch := newWatchdog(l.timeout(), func() { raw.Close() })
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	m := &methods{login: l, server: server{asker: l.Asker, watch: watch, name: l.User + "@" + l.Host}}
	conn, channels, requests, err := ssh.NewClientConn(raw, l.Address, &ssh.ClientConfig{
		Config: ssh.Config{
			Ciphers:      l.Algorithms.Ciphers,
			KeyExchanges: l.Algorithms.KeyExchanges,
			MACs:         l.Algorithms.MACs,
		},
		User:              l.User,
		HostKeyAlgorithms: l.Algorithms.HostKeys,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			return l.CheckHost(key)
		},
		AuthCallback:   m.next,
		BannerCallback: m.server.tell,
	})
	if err = l.outcome(ctx, m.outcome(err), watch.stop(), !stop()); err != nil {
		raw.Close()
		jump.Close()
		return nil, err
	}
	return &connection{ssh.NewClient(conn, channels, requests), jump}, nil
}

func (l *Login) timeout() time.Duration {
	if l.Timeout == 0 {
		return usualTimeout
	}
	return l.Timeout
}

// connect returns a connection to the host's address, and the one to the jump host that it leads
// through, or nil.
func (l *Login) connect(ctx context.Context) (raw net.Conn, jump *connection, err error) {
	dial, network := l.Dial, l.Network
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	if l.Jump != nil {
		if jump, err = l.Jump.dial(ctx); err != nil {
			return nil, nil, err
		}
		dial, network = jump.client.DialContext, "tcp"
	}
	limited, cancel := context.WithTimeout(ctx, l.timeout())
	defer cancel()
	if raw, err = dial(limited, network, l.Address); err == nil {
		return raw, jump, nil
	}
	jump.Close()
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	return nil, nil, l.explain(err)
}

// explain makes an error printable, which may have text of the server, and says of which host
// it is.
func (l *Login) explain(err error) error {
	return &loginError{"ssh to " + l.Host + ": " + wire.Printable(err.Error(), maxText), err}
}

// A loginError is an error with a text of its own.
type loginError struct {
	text string
	err  error
}

func (e *loginError) Error() string { return e.text }
func (e *loginError) Unwrap() error { return e.err }

// A connection is logged in. It may lead through others.
type connection struct {
	client *ssh.Client
	jump   *connection
}

// Close closes the connection and those that it leads through. A nil connection is closed.
func (c *connection) Close() error {
	if c == nil {
		return nil
	}
	err := c.client.Close()
	c.jump.Close()
	return err
}
