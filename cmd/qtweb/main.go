//go:build js

// Command qtweb is the client of a page: qt in WebAssembly, on a terminal that the page shows. It runs in a worker, and has
// no other way to the network than WebSockets to where the page is from.
//
// It talks to the page in objects with one field each. The page sends
//
//	start    once: what to attach to (start in main.go)
//	keys     what is typed, a string
//	size     columns and rows
//	shown    how many bytes of output the terminal has taken
//	network  "changed" or "woke"
//
// and gets
//
//	ready    the program runs
//	output   bytes for the terminal
//	link     the state of the connection
//	ended    why the session is over for this client, in words
package main

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall/js"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate/carrier/websocket"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/version"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A start says what to attach to. With a secret, qt web serves the page: it answers with the other fields, and another
// secret for the connections that follow.
type start struct {
	socket  string // URL
	secret  string // base64, as the token
	token   string // for one login
	key     string // fingerprint of the host's
	host    string // for people
	session string // to attach to; a new one if empty
	size    wire.Size
}

// read sets the fields that an object of the page, or of qt web, has.
func (s *start) read(v js.Value) {
	for name, field := range map[string]*string{
		"socket": &s.socket, "secret": &s.secret, "token": &s.token, "key": &s.key, "host": &s.host, "session": &s.session,
	} {
		if text := v.Get(name); text.Type() == js.TypeString {
			*field = text.String()
		}
	}
}

func main() {
	p := newPage()
	p.post("ready", version.String())
	p.post("ended", ending(run(context.Background(), p, <-p.starts)))
}

// server is the address of the only server, for the packages that tell servers apart by address. The browser finds it by
// the URL.
var server = netip.MustParseAddrPort("192.0.2.1:443")

// run runs a session until it ends, and returns its status.
func run(ctx context.Context, p *page, s start) (status int, err error) {
	if s.secret != "" {
		if s, err = ask(ctx, s); err != nil {
			return 0, err
		}
	}
	network := &network{url: s.socket, events: p.events}
	if network.proof, err = proof(relay, s.secret); err != nil {
		return 0, err
	}
	token, err := base64.RawURLEncoding.DecodeString(s.token)
	if err != nil || len(token) == 0 {
		return 0, errors.New("the link is not complete: open it again as it was given to you")
	}
	c := client.New(client.Config{
		Software: "qtweb " + version.String(),
		Resolve:  func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{server}, nil },
		CheckHost: func(key ssh.PublicKey) error {
			if ssh.FingerprintSHA256(key) != s.key {
				return errors.New("the server has another key than the link says: another machine may be in between")
			}
			return nil
		},
		Token: token, TCPFirst: true, Network: network,
	})
	defer c.Close()
	t := terminal.New(terminal.Config{
		Pane:   &terminal.Pane{In: p.keys, Out: p, Sizes: p.sizes},
		Escape: "none", Predict: predict.Adaptive, Host: s.host,
		Status: func(client.Status) string { return "" },
	})
	streams := t.Streams()
	changed := streams.Changed
	streams.Changed = func(l client.LinkState) {
		changed(l)
		p.post("link", l.State.String())
	}
	req := &wire.Attach{
		PTY: true, Size: s.size, Session: s.session, Machine: "a browser",
		Env: [][2]string{{"TERM", "xterm-256color"}, {"COLORTERM", "truecolor"}},
	}
	if s.session != "" {
		req.Mode = wire.ModeAttach
	}
	session, err := c.Attach(ctx, req, streams)
	if err != nil {
		return 0, err
	}
	return t.RunPane(ctx, session, req.Size)
}

// The kinds of a connection to qt web, of which one byte and a secret are the first that is sent: one to ask what to
// attach to, and those that are relayed to the host.
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

// ask asks qt web what to attach to.
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
		return s, errors.New("the link was used before: run qt web again")
	}
	answer := make([]byte, min(int(binary.BigEndian.Uint16(size[:])), maxAnswer))
	if _, err := io.ReadFull(c, answer); err != nil {
		return s, err
	}
	s.read(js.Global().Get("JSON").Call("parse", string(answer))) // qt web is ours
	return s, nil
}

// ending says in words how a session has ended for this client.
func ending(status int, err error) string {
	var refusal *wire.Error
	switch {
	case err == nil && status == 0:
		return "the session has ended"
	case err == nil:
		return fmt.Sprintf("the session has ended with status %d", status)
	case errors.Is(err, client.ErrLeft):
		return "left; the session continues"
	case errors.As(err, new(*client.DeniedError)):
		return "the server does not accept the link: it was used before, or is older than a minute"
	case errors.As(err, &refusal):
		return refusal.Error()
	}
	return err.Error()
}

// value returns an object with one field.
func value(name string, v any) js.Value {
	object := js.Global().Get("Object").New()
	object.Set(name, v)
	return object
}
