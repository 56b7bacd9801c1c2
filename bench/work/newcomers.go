//go:build linux

package work

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Newcomers resumes a session and opens another one, in turn. It yields "resume",
// milliseconds from the dial of a client that has lost its path until it may send, and
// "login", from the start of a client until its first prompt.
type Newcomers struct {
	ownSessions
	Times int
}

func (w Newcomers) Run(j *Job) []Figure {
	resume := Figure{Metric: "resume", Unit: "ms", Portable: true}
	login := Figure{Metric: "login", Unit: "ms", Portable: true}
	r := newResumer(j)
	j.Begin()
	for range w.Times {
		start := time.Now()
		resume.add(r.resume(), j.since(start))
		start = time.Now()
		login.add(j.Clients[0].login(j.T).Sub(start), j.since(start))
	}
	j.End()
	return []Figure{resume, login}
}

// A resumer is a client that resumes one session again and again.
type resumer struct {
	job      *Job
	server   netip.AddrPort
	tls      *tls.Config
	attached wire.Attached
	n        uint64 // of the last Resume
}

// newResumer opens a session.
func newResumer(j *Job) *resumer {
	m := j.Clients[0].Machine
	r := &resumer{
		job:    j,
		server: netip.AddrPortFrom(netip.MustParseAddr(m.Server), m.Port),
		tls: &tls.Config{
			InsecureSkipVerify: true,
			NextProtos:         []string{wire.ALPN},
			ServerName:         auth.ServerName(nil),
			ClientSessionCache: tls.NewLRUClientSessionCache(1),
		},
	}
	grant, err := bootstrap.Ask(j.Host.Path("run"), func() error { return errors.New("no daemon") })
	if err != nil {
		j.T.Fatal(err)
	}
	c, err := r.dial(quic.Dial, &r.attached, &wire.Hello{}, &wire.Token{Token: grant.Token}, &wire.Attach{PTY: true})
	if err != nil {
		j.T.Fatalf("open a session: %v", err)
	}
	defer c.Close()
	for until := time.Now().Add(rig.Patience); ; time.Sleep(10 * time.Millisecond) {
		if _, ok := r.tls.ClientSessionCache.Get(r.tls.ServerName); ok {
			return r
		}
		if time.Now().After(until) {
			j.T.Fatal("no TLS ticket")
		}
	}
}

// resume returns how long it takes until a dial succeeds. Like the client, it dials again
// after every failure.
func (r *resumer) resume() time.Duration {
	const again = 100 * time.Millisecond
	start := time.Now()
	for {
		r.n++
		m := &wire.Resume{UID: r.attached.UID, ID: r.attached.ID, N: r.n}
		m.Proof = auth.Proof(r.attached.Secret, m.Statement())
		c, err := r.dial(quic.DialEarly, new(wire.Resumed), m)
		took := time.Since(start)
		if err == nil {
			c.Close()
			return took
		}
		if took > rig.Patience {
			r.job.T.Fatalf("resume: %v", err)
		}
		time.Sleep(again)
	}
}

type dialFunc func(context.Context, net.PacketConn, netip.AddrPort, *tls.Config) (*quic.Conn, error)

// dial connects, sends messages at once, and reads the answer.
func (r *resumer) dial(dial dialFunc, answer wire.Body, messages ...wire.Body) (*quic.Conn, error) {
	socket, err := quic.ListenUDP("")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
	defer cancel()
	c, err := dial(ctx, socket, r.server, r.tls)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	var flight []byte
	for _, v := range messages {
		m, err := wire.New(v)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		flight = m.Append(flight)
	}
	if _, err := c.Write(flight); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	m, err := wire.Read(c, wire.MaxMessage)
	if err == nil {
		err = m.Decode(answer)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}
