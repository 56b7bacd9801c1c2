package forwards

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/forward"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// bindTime bounds how long an agent may take for what needs no key.
	bindTime = 10 * time.Second

	signRequest      = 13 // SSH_AGENTC_SIGN_REQUEST
	extensionRequest = 27 // SSH_AGENTC_EXTENSION
)

// An offer is the ssh agent that the sessions of this client may use.
type offer struct {
	id   wire.AgentID
	bind []byte // the first message of each connection to the agent

	refused []byte // the request in place of one that the user has refused
}

// newOffer draws the id by which a session asks for the agent. What a server asks is bound to a session of ssh with a key
// that no host has: so the agent knows that it is forwarded, and uses no keys that are for some hosts alone, nor loads
// code. See session-bind@openssh.com in PROTOCOL.agent of OpenSSH.
func newOffer() (*offer, error) {
	o := new(offer)
	session := make([]byte, 32)
	rand.Read(o.id[:])
	rand.Read(session)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		return nil, err
	}
	signature, err := signer.Sign(rand.Reader, session)
	if err != nil {
		return nil, err
	}
	message := ssh.Marshal(struct {
		Name                    string
		Key, Session, Signature []byte
		Forwarded               bool
	}{sessionBind, signer.PublicKey().Marshal(), session, ssh.Marshal(signature), true})
	o.bind = binary.BigEndian.AppendUint32(nil, uint32(len(message)+1))
	o.bind = append(append(o.bind, extensionRequest), message...)
	o.refused = refusedBy(signer.PublicKey())
	return o, nil
}

// offerAgent makes the server listen for connections to the agent. If it does not, there is none for the sessions of this
// client.
func (f *Forwards) offerAgent(ctx context.Context) error {
	o, err := newOffer()
	if err != nil {
		return err
	}
	e := f.list.enter(Spec{Kind: Agent, Target: Address{Path: f.config.Agent}, offer: o})
	p, err := f.open(ctx)
	if err != nil {
		err = e.error(err)
	} else if _, err = f.listenAt(ctx, p, e); err == nil {
		f.offer = o
		f.keep(p)
		return nil
	}
	f.list.remove(e)
	return err
}

// AgentID returns the Agent for an Attach, or nil if no agent is offered.
func (f *Forwards) AgentID() []byte {
	if f == nil || f.offer == nil {
		return nil
	}
	return f.offer.id[:]
}

// useAgent connects a program on the server to the agent.
func (f *Forwards) useAgent(stream *forward.Stream, e *entry) {
	c, err := f.connectBy(func() (net.Conn, error) { return auth.DialAgent(f.life, e.Target.Path) })
	if err != nil {
		f.fail(nil, stream, e, e.Target, errors.New(forward.Reason(err)))
		return
	}
	defer context.AfterFunc(f.life, func() { forward.Abort(c) })()
	defer context.AfterFunc(e.life, func() { forward.Abort(c) })()
	c.SetDeadline(time.Now().Add(bindTime))
	_, err = c.Write(e.offer.bind)
	var length [4]byte
	if err == nil {
		_, err = io.ReadFull(c, length[:])
	}
	var n uint32
	if err == nil {
		n, err = wire.ParseAgentLength(length[:])
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, c, int64(n)) // older agents answer with a failure, which is fine
	}
	if err != nil {
		forward.Abort(c)
		f.fail(nil, stream, e, e.Target, err)
		return
	}
	c.SetDeadline(time.Time{})
	counted := &agentConn{Conn: c.(forward.Conn), uses: &e.uses}
	if !f.config.Confirm {
		e.join(stream, counted, nil)
		return
	}
	g := newGuard(f, e, counted)
	defer g.end()
	e.join(stream, g, nil)
}

// uses are the signatures that programs on the server have asked for.
type uses struct{ count, last atomic.Int64 } // last in Unix seconds

// An agentConn is a connection to an agent, on which requests are counted.
type agentConn struct {
	forward.Conn
	uses *uses
	head []byte // of a request: its length and its number, as far as they have come
	left int    // bytes of the request behind those
}

// Write implements [io.Writer]. A request that is too long for an agent ends the connection.
func (c *agentConn) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		if c.left > 0 {
			n := min(c.left, len(rest))
			rest, c.left = rest[n:], c.left-n
			continue
		}
		c.head, rest = append(c.head, rest[0]), rest[1:]
		if len(c.head) < 5 {
			continue
		}
		n, err := wire.ParseAgentLength(c.head)
		if err != nil {
			c.Conn.Close() // or forward.Join would wait for an answer of the agent
			return 0, err
		}
		if c.head[4] == signRequest {
			c.uses.count.Add(1)
			c.uses.last.Store(time.Now().Unix())
		}
		c.head, c.left = c.head[:0], int(n)-1
	}
	return c.Conn.Write(b)
}
