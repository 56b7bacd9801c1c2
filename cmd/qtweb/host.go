//go:build js

package main

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"syscall/js"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate/carrier/websocket"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/version"
	"github.com/quicterm/quicterm/quicterm/web/link"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A start says which host to connect to. With a secret, qt web serves the page: it answers with the following fields, and
// another secret for what follows. With a link, the page comes from the host's daemon.
type start struct {
	socket string // URL
	secret string // base64, as the token

	token   string // for one login
	key     string // fingerprint of the host's
	host    string // for people
	session string // to attach to; a new one if empty

	link   string   // the fragment, see package link
	device js.Value // the key of this browser, {public, key}, or undefined
	name   string   // of a device that is to be enrolled
	push   js.Value // the subscription of this browser for messages, {endpoint, key, auth, signer}, or undefined
}

// read sets the fields that an object of the page, or of qt web, has.
func (s *start) read(v js.Value) {
	for name, field := range map[string]*string{
		"socket": &s.socket, "secret": &s.secret, "token": &s.token, "key": &s.key, "host": &s.host, "session": &s.session,
		"link": &s.link, "name": &s.name,
	} {
		if text := v.Get(name); text.Type() == js.TypeString {
			*field = text.String()
		}
	}
	s.device, s.push = v.Get("device"), v.Get("push")
}

// A host is where the sessions of a page are.
type host struct {
	client  *client.Client
	name    string // for people
	session string // that the link is for, a new one if empty

	share  *link.Share   // of a guest, or nil
	device ssh.PublicKey // by which the page logs in, or nil
	notify *wire.Notify  // asked for with each session
	denied string        // what it means that the server lets nobody in
	note   string        // for the user, or nothing
}

// server is the address of the only server, for the packages that tell servers apart by address. The browser finds it by
// the URL.
var server = netip.MustParseAddrPort("192.0.2.1:443")

// connect returns the host to which s leads.
func connect(ctx context.Context, s start, n *network) (h *host, err error) {
	if s.secret != "" {
		if s, err = ask(ctx, s); err != nil {
			return nil, err
		}
	}
	n.url = s.socket
	if n.proof, err = proof(relay, s.secret); err != nil {
		return nil, err
	}
	if s.link != "" {
		return enter(ctx, s, n)
	}
	cfg := config(n, func(key ssh.PublicKey) bool { return ssh.FingerprintSHA256(key) == s.key })
	cfg.Token = tokens(s)
	return &host{
		client: client.New(cfg), name: s.host, session: s.session, notify: new(wire.Notify),
		denied: "the server does not accept the login: a link is good once, and for a minute",
	}, nil
}

// config returns what all clients of the page have in common. isHost reports whether a key is the host's.
func config(n *network, isHost func(ssh.PublicKey) bool) client.Config {
	return client.Config{
		Software: "qtweb " + version.String(),
		Machine:  "a browser",
		Resolve:  func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{server}, nil },
		CheckHost: func(key ssh.PublicKey) error {
			if !isHost(key) {
				return errors.New("the server has another key than the link says: another machine may be in between")
			}
			return nil
		},
		NoUDP: true, Network: n,
	}
}

// tokens returns tokens: the one that came with s, and those of qt web for further logins.
func tokens(s start) func(context.Context) ([]byte, error) {
	first := make(chan string, 1)
	first <- s.token
	return func(ctx context.Context) ([]byte, error) {
		text := ""
		select {
		case text = <-first:
		default:
			if s.secret != "" {
				again, err := ask(ctx, s)
				if err != nil {
					return nil, err
				}
				text = again.token
			}
		}
		token, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(token) == 0 {
			return nil, errors.New("the link is not complete, or was used: get another one")
		}
		return token, nil
	}
}

// The kinds of a connection to qt web, of which one byte and a secret are the first that is sent: one to ask what to
// attach to and for a token, and those that are relayed to the host.
const (
	question = 'q'
	relay    = 'r'

	secretSize = 32

	// maxAnswer bounds the answer to a question in bytes.
	maxAnswer = 16 << 10
)

// proof returns the first bytes of a connection, or nothing without a secret.
func proof(kind byte, secret string) ([]byte, error) {
	if secret == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(secret)
	if err != nil || len(b) != secretSize {
		return nil, errors.New("the link is not complete: run qt web again")
	}
	return append([]byte{kind}, b...), nil
}

// ask asks qt web what to attach to, with the secret of the link or of an earlier answer.
func ask(ctx context.Context, s start) (start, error) {
	first, err := proof(question, s.secret)
	if err != nil {
		return s, err
	}
	c, err := websocket.Open(ctx, s.socket, nil)
	if err != nil {
		return s, errors.New("qt web does not run any more: run it again")
	}
	defer c.Close()
	if _, err := c.Write(first); err != nil {
		return s, err
	}
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return s, errors.New("qt web does not log in: its link was used before, or it says why; run it again")
	}
	answer := make([]byte, min(int(binary.BigEndian.Uint16(size[:])), maxAnswer))
	if _, err := io.ReadFull(c, answer); err != nil {
		return s, err
	}
	s.read(js.Global().Get("JSON").Call("parse", string(answer))) // qt web is ours
	return s, nil
}
