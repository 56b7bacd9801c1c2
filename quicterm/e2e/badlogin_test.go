//go:build linux || darwin

package e2e

import (
	"bytes"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func badBeforeLogin(t *testing.T, h *rig.Host, dial rawDialer) {
	hello := encode(t, &wire.Hello{})
	list := encode(t, &wire.List{})
	many := make([][]byte, wire.MaxKeys+1)
	for _, test := range []struct {
		name   string
		send   []byte
		fin    bool   // end the stream after it
		denied bool   // the daemon answers with Denied
		why    string // in the log
	}{
		{name: "header cut", send: hello[:2], fin: true, why: "first message"},
		{name: "message cut", send: hello[:len(hello)-1], fin: true, why: "first message"},
		{name: "random bytes", send: append([]byte{byte(wire.TypeHello), 0, 1, 0}, random(256)...), denied: true, why: "denied"},
		{name: "long random bytes", send: bytes.Repeat([]byte{0xff}, 100_000), why: "first message"},
		{name: "claims too much", send: header(wire.TypeHello, wire.MaxMessage+1), why: "longer than allowed"},
		{name: "resume that claims too much", send: header(wire.TypeResume, 1<<24-1), why: "longer than allowed"},
		{name: "resume of another size", send: append(header(wire.TypeResume, 3), 1, 2, 3), why: "resume of 3 bytes"},
		{name: "empty hello", send: header(wire.TypeHello, 0), denied: true, why: "denied"},
		{name: "no map", send: append(header(wire.TypeHello, 1), 0x80), denied: true, why: "denied"},
		{name: "deep", send: append(header(wire.TypeHello, 5000), bytes.Repeat([]byte{0x81}, 5000)...), denied: true, why: "denied"},
		{name: "claims many keys", send: append(header(wire.TypeHello, 7), 0xa1, 3, 0x9a, 0xff, 0xff, 0xff, 0xff), denied: true, why: "denied"},
		{name: "many keys", send: encode(t, &wire.Hello{Keys: many}), denied: true, why: "65 keys"},
		{name: "request first", send: append(encode(t, &wire.Attach{}), hello...), denied: true, why: "where 1 was expected"},
		{name: "token first", send: append(newToken(t, h), hello...), denied: true, why: "where 1 was expected"},
		{name: "answer first", send: encode(t, &wire.Answer{}), denied: true, why: "where 1 was expected"},
		{name: "what a server says", send: encode(t, &wire.Attached{}), denied: true, why: "where 1 was expected"},
		{name: "what a daemon says to a holder", send: encode(t, &wire.Open{}), denied: true, why: "where 1 was expected"},
		{name: "type 0", send: header(0, 0), denied: true, why: "where 1 was expected"},
		{name: "type 255", send: append(header(255, 1), 0xa0), denied: true, why: "where 1 was expected"},
		{name: "hello twice", send: bytes.Join([][]byte{hello, hello, list}, nil), denied: true, why: "another hello"},
		{name: "two requests", send: bytes.Join([][]byte{hello, list, list}, nil), denied: true, why: "second request"},
		{name: "request that claims too much", send: append(bytes.Clone(hello), header(wire.TypeAttach, wire.MaxMessage+1)...), denied: true, why: "longer than allowed"},
		{name: "request cut", send: append(bytes.Clone(hello), list[:3]...), fin: true, denied: true, why: "unexpected EOF"},
		{name: "end after hello", send: hello, fin: true, denied: true, why: "EOF"},
		{name: "keys that are none", send: append(encode(t, &wire.Hello{User: accountName(t), Keys: [][]byte{nil, random(100), []byte("ssh-ed25519")}}), list...), denied: true, why: "none of 3 keys"},
		{name: "account with odd bytes", send: append(encode(t, &wire.Hello{User: "../\x00\xff\n" + strings.Repeat("x", 100_000), Keys: many[:1]}), list...), denied: true, why: "denied"},
		{name: "resume of an unknown account", send: encode(t, &wire.Resume{UID: math.MaxUint32}), why: "resume"},
	} {
		c := dial(t, h)
		c.send(test.send)
		if test.fin {
			c.conn.CloseWrite()
		}
		if test.name == "resume of an unknown account" {
			if os.Geteuid() == 0 { // or the daemon does not serve it, and cannot know
				c.wantMessage(&wire.Denied{})
			}
			c.wantDropped(test.why)
			continue
		}
		if test.denied {
			c.wantDenied(test.why)
		} else {
			c.wantDropped(test.why)
		}
		if t.Failed() {
			t.Fatal(test.name)
		}
	}
}

// A client may try five signatures.
func badSignatures(t *testing.T, h *rig.Host, dial rawDialer) {
	c := dial(t, h)
	c.send(encode(t, &wire.Hello{User: accountName(t), Keys: [][]byte{h.Key.Marshal()}}), encode(t, &wire.List{}))
	blobs := [][]byte{nil, {0}, random(100), []byte("SSHSIG"), append([]byte("SSHSIG\x00\x00\x00\x01\xff\xff\xff\xff"), random(50)...)}
	for _, b := range blobs {
		var offer wire.Offer
		c.wantMessage(&offer)
		if len(offer.Keys) != 1 {
			t.Fatalf("offered %d keys", len(offer.Keys))
		}
		key := h.Key.Marshal()
		if len(b) == 1 {
			key = random(32) // not in Hello
		}
		c.send(encode(t, &wire.Answer{Key: key, Signature: b}))
	}
	c.wantDenied("6 answers")

	// A signature for one connection is not valid on another.
	identity, err := auth.IdentityFile(h.Path("id"), nil)
	if err != nil {
		t.Fatal(err)
	}
	other := dial(t, h)
	hello := encode(t, &wire.Hello{User: accountName(t), Keys: [][]byte{h.Key.Marshal()}})
	answer := other.answer(identity, now())
	other.send(hello, answer, encode(t, &wire.List{}))
	other.wantMessage(&wire.Listing{})
	c = dial(t, h)
	c.send(hello, answer, encode(t, &wire.List{}))
	c.wantMessage(&wire.Offer{})
	c.conn.CloseWrite()
	c.wantDenied("denied")
}

// A client whose clock is wrong logs in by the time of an Offer, over QUIC and TCP, and tries in vain only
// so often. A client of any clock does so after a restart of the daemon.
func TestWrongClock(t *testing.T) {
	h := newHost(t)
	h.Start()
	identity, err := auth.IdentityFile(h.Path("id"), nil)
	if err != nil {
		t.Fatal(err)
	}
	hello := encode(t, &wire.Hello{User: accountName(t), Keys: [][]byte{h.Key.Marshal()}})
	for _, dial := range []rawDialer{dialRaw, dialRawTCP} {
		for _, clock := range []time.Time{time.Unix(0, 0), time.Now().Add(-3 * time.Minute), time.Now().Add(24 * 365 * time.Hour)} {
			c := dial(t, h)
			c.send(hello, c.answer(identity, auth.ClientTime(clock)), encode(t, &wire.List{}))
			var offer wire.Offer
			c.wantMessage(&offer)
			c.send(c.answer(identity, auth.ServerTime(offer.Time)))
			c.wantMessage(&wire.Listing{})
		}
		c := dial(t, h)
		c.send(hello, encode(t, &wire.List{}))
		for range 5 {
			c.wantMessage(&wire.Offer{})
			c.send(c.answer(identity, auth.ClientTime(time.Unix(0, 0))))
		}
		c.wantDenied("6 answers failed, the last: account " + accountName(t) + ": the signature's time is not that of this machine")
	}
	wantListed(t, h)
	h.Stop(syscall.SIGTERM)
	h.Start()
	wantListed(t, h)
}

// wantListed checks that qt logs in with a key.
func wantListed(t *testing.T, h *rig.Host) {
	t.Helper()
	if out, err := h.QT("ls").CombinedOutput(); err != nil {
		t.Errorf("qt ls: %v\n%s", err, out)
	}
}

// A token is valid once. (Package auth tests that it expires.)
func badTokens(t *testing.T, h *rig.Host, dial rawDialer) {
	hello, list := encode(t, &wire.Hello{}), encode(t, &wire.List{})
	for _, token := range [][]byte{nil, {}, random(31), random(32), random(33), random(150_000)} {
		c := dial(t, h)
		c.send(hello, encode(t, &wire.Token{Token: token}), list)
		c.wantDenied("token is not valid")
	}
	c := dial(t, h)
	c.send(hello, header(wire.TypeToken, 100), random(100), list)
	c.wantDenied("denied")
	once := newToken(t, h)
	for i := range 3 {
		c := dial(t, h)
		c.send(hello, once, list)
		if i == 0 {
			c.wantMessage(&wire.Listing{})
			continue
		}
		c.wantDenied("token is not valid")
	}
	// Nor after a wrong one on the same connection, nor twice on one.
	c = dial(t, h)
	c.send(hello, encode(t, &wire.Token{Token: random(32)}), newToken(t, h), list)
	c.wantDenied("token is not valid")
	once = newToken(t, h)
	c = dial(t, h)
	c.send(hello, once, once, list)
	c.wantDenied("token is not valid")
}
