package forwards

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxGuarded bounds what waits on a guard for an answer, in bytes: more than a login with a certificate. A program that
	// asks for more ends its connection.
	maxGuarded = 16 << 10

	// maxWord bounds a word of the server in a question, in bytes.
	maxWord = 64

	listRequest     = 11 // SSH_AGENTC_REQUEST_IDENTITIES
	userAuthRequest = 50 // SSH_MSG_USERAUTH_REQUEST
	sessionBind     = "session-bind@openssh.com"
	hostBound       = "publickey-hostbound-v00@openssh.com"
)

// A guard is a connection to an agent on which the user is asked for each signature. Without it, programs can list keys and
// bind the connection to a session of ssh; what else they ask for fails: some agents could use a key by it.
type guard struct {
	*agentConn
	forwards *Forwards
	entry    *entry
	life     context.Context // of a question: it ends with what the program sends
	end      context.CancelFunc

	mu      sync.Mutex
	waiting []byte
	passing bool // the goroutine that passes on what waits runs
}

func newGuard(f *Forwards, e *entry, c *agentConn) *guard {
	g := &guard{agentConn: c, forwards: f, entry: e}
	g.life, g.end = context.WithCancel(f.life)
	return g
}

// Write implements [io.Writer]. It does not wait for the user, so that its caller notices when the program ends.
func (g *guard) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting)+len(b) > maxGuarded {
		g.Close() // or forward.Join would wait for an answer of the agent
		return 0, fmt.Errorf("more than %d bytes wait for an answer", maxGuarded)
	}
	g.waiting = append(g.waiting, b...)
	if !g.passing {
		g.passing = true
		g.forwards.work.Go(g.pass)
	}
	return len(b), nil
}

// CloseWrite ends a question: the session's holder ends both ways of a program's connection at once, so the signature would
// not arrive.
func (g *guard) CloseWrite() error {
	g.end()
	return g.agentConn.CloseWrite()
}

func (g *guard) Close() error {
	g.end()
	return g.agentConn.Close()
}

// pass passes on the requests that wait and are whole. One that is not permitted becomes one that every agent refuses, so
// that answers stay in their order.
func (g *guard) pass() {
	for {
		request, err := g.next()
		switch {
		case err != nil:
		case request == nil:
			return
		case g.permits(request[4:]):
			_, err = g.agentConn.Write(request)
		default:
			_, err = g.Conn.Write(g.entry.offer.refused)
		}
		if err != nil {
			g.Close()
			return
		}
	}
}

// next returns a request with its length, or nil if none is whole.
func (g *guard) next() (request []byte, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	end := 4
	if len(g.waiting) >= end {
		n, err := wire.ParseAgentLength(g.waiting)
		if err == nil && n > maxGuarded-4 {
			err = errors.New("a request is too long to ask for it")
		}
		if err != nil {
			return nil, err
		}
		end += int(n)
	}
	if g.passing = len(g.waiting) >= end && end > 4; !g.passing {
		return nil, nil
	}
	request, g.waiting = g.waiting[:end:end], g.waiting[end:]
	return request, nil
}

// permits reports whether the agent may get a request. It blocks while the user is asked.
func (g *guard) permits(request []byte) bool {
	switch request[0] {
	case listRequest:
		return true
	case extensionRequest:
		var extension struct {
			Name     string `sshtype:"27"`
			Contents []byte `ssh:"rest"`
		}
		return ssh.Unmarshal(request, &extension) == nil && extension.Name == sessionBind
	case signRequest:
		what, key, err := describe(request)
		if err != nil {
			return false
		}
		comment, listed := g.commentOf(key)
		if comment != "" {
			what += " (" + wire.Printable(comment, maxWord) + ")"
		}
		return listed && g.forwards.confirm(g.life, what)
	}
	return false
}

// describe says in words what a request for a signature would let the server do, and with which key.
func describe(request []byte) (what string, key []byte, err error) {
	var sign struct {
		Key   []byte `sshtype:"13"`
		Data  []byte
		Flags uint32
	}
	if err := ssh.Unmarshal(request, &sign); err != nil {
		return "", nil, err
	}
	public, err := ssh.ParsePublicKey(sign.Key)
	if err != nil {
		return "", nil, err
	}
	var login struct { // RFC 4252, 7
		Session               []byte
		Number                byte
		User, Service, Method string
		Rest                  []byte `ssh:"rest"`
	}
	var file struct { // PROTOCOL.sshsig of OpenSSH, behind its magic
		Namespace string
		Rest      []byte `ssh:"rest"`
	}
	signed, isFile := bytes.CutPrefix(sign.Data, []byte("SSHSIG"))
	switch {
	case ssh.Unmarshal(sign.Data, &login) == nil && login.Number == userAuthRequest:
		what = fmt.Sprintf("log in as %q", wire.Printable(login.User, maxWord))
		var bound struct { // PROTOCOL of OpenSSH, 1.10
			Signs     bool
			Algorithm string
			Key, Host []byte
		}
		if login.Method == hostBound && ssh.Unmarshal(login.Rest, &bound) == nil {
			if host, err := ssh.ParsePublicKey(bound.Host); err == nil {
				what += " at the host of " + ssh.FingerprintSHA256(auth.PlainKey(host))
			}
		}
	case isFile && ssh.Unmarshal(signed, &file) == nil:
		what = fmt.Sprintf("sign for %q", wire.Printable(file.Namespace, maxWord))
	default:
		what = "sign"
	}
	public = auth.PlainKey(public)
	return fmt.Sprintf("%s with %s %s", what, public.Type(), ssh.FingerprintSHA256(public)), sign.Key, nil
}

// commentOf returns the agent's comment on a key, and whether the agent lists the key: for others the user is not asked.
func (g *guard) commentOf(key []byte) (comment string, listed bool) {
	c, err := auth.DialAgent(g.life, g.entry.Target.Path)
	if err != nil {
		return "", false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(bindTime))
	keys, _ := agent.NewClient(c).List()
	for _, k := range keys {
		if bytes.Equal(k.Blob, key) {
			return k.Comment, true
		}
	}
	return "", false
}

// ConfirmBy makes ask ask the user whether the server may do something by the agent: until then it may not. Ask blocks until
// there is an answer or the context ends.
func (f *Forwards) ConfirmBy(ask func(ctx context.Context, what string) bool) {
	if f == nil {
		return
	}
	f.telling.Lock()
	defer f.telling.Unlock()
	f.ask = ask
}

func (f *Forwards) confirm(ctx context.Context, what string) bool {
	f.telling.Lock()
	ask := f.ask
	f.telling.Unlock()
	return ask != nil && ask(ctx, what)
}

// refusedBy returns a request for a signature with a key that no agent has.
func refusedBy(key ssh.PublicKey) []byte {
	message := ssh.Marshal(struct {
		Key   []byte `sshtype:"13"`
		Data  []byte
		Flags uint32
	}{Key: key.Marshal()})
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}
