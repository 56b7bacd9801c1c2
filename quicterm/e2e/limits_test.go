//go:build linux || darwin

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Silent clients keep nobody out: above max_unauthenticated one of them loses its
// place, and learns that the server is busy. auth_timeout ends those that stay.
func TestMaxUnauthenticated(t *testing.T) {
	h := newHost(t)
	h.Settings["max_unauthenticated"] = "6"
	h.Settings["auth_timeout"] = `"1m"`
	h.Start()
	// The server ends a silent client after 5 s anyway, without a refusal. On a busy machine, that may
	// be before there are too many.
	for until := time.Now().Add(3 * rig.Patience); ; {
		clients := make([]*rawClient, 10)
		ends := make(chan error, len(clients))
		for n := range clients {
			clients[n] = dialRaw(t, h)
			c := clients[n].conn.(*quic.Conn)
			go func() {
				<-c.Context().Done()
				ends <- context.Cause(c.Context())
			}()
		}
		refused := 0
		for range clients {
			if refused == 7 { // the others have places: they are closed for what they send
				for _, c := range clients {
					c.send(header(wire.TypeHello, wire.MaxMessage+1))
				}
			}
			if quic.Refused(<-ends) {
				refused++
			}
		}
		if refused == 7 {
			break
		}
		if refused > 7 || time.Now().After(until) {
			t.Fatalf("%d of 10 silent clients are refused, want 7", refused)
		}
	}
	wantOutput(t, h.QT("connect", "echo in"), "in\n")
	h.Log.Await(t, 0, regexp.MustCompile("too many unauthenticated clients"))

	h.Stop(syscall.SIGTERM)
	h.Settings["auth_timeout"] = `"2s"`
	h.Start()
	from := h.Log.Len()
	dialRaw(t, h)
	dialRaw(t, h)
	h.Log.Await(t, from, regexp.MustCompile("(?s)client refused.*accept stream.*client refused.*accept stream"))
}

// Clients that are silent or slow before they are authenticated are disconnected by
// auth_timeout, and do not disturb established sessions.
func TestSlowLogin(t *testing.T) {
	// More than the 5 s that a client has for its first message, which must not count for those that have sent it.
	const timeout = 6 * time.Second
	h := newHost(t)
	h.Settings["auth_timeout"] = fmt.Sprintf("%q", timeout)
	h.Settings["max_unauthenticated"] = "96" // of which 48 may be silent
	h.Start()
	x := h.Shell(h.Addr)
	hello, list := encode(t, &wire.Hello{}), encode(t, &wire.List{})
	key := encode(t, &wire.Hello{User: accountName(t), Keys: [][]byte{h.Key.Marshal()}})
	start := time.Now()
	var wg sync.WaitGroup
	denied := encode(t, &wire.Denied{})
	for name, test := range map[string]struct {
		send    []byte
		slow    bool // one byte at a time
		offered bool // an Offer of the key comes before the end
	}{
		"nothing":       {},
		"half a header": {send: hello[:2]},
		"half a hello":  {send: hello[:len(hello)-1]},
		"only a header": {send: header(wire.TypeHello, wire.MaxMessage)},
		"a slow body":   {send: append(header(wire.TypeHello, wire.MaxMessage), make([]byte, 5000)...), slow: true},
		"half a resume": {send: encode(t, &wire.Resume{})[:50]},
		"hello":         {send: hello},
		"half a token":  {send: append(bytes.Clone(hello), header(wire.TypeToken, 32)...)},
		"a slow token":  {send: append(append(bytes.Clone(hello), header(wire.TypeToken, 5000)...), make([]byte, 5000)...), slow: true},
		"no answer":     {send: append(bytes.Clone(hello), list...)},
		"no signature":  {send: append(bytes.Clone(key), list...), offered: true},
	} {
		c := dialRaw(t, h)
		wg.Go(func() {
			if test.slow {
				go func() {
					for i := range test.send {
						if _, err := c.conn.Write(test.send[i : i+1]); err != nil {
							return
						}
						time.Sleep(20 * time.Millisecond)
					}
				}()
			} else if len(test.send) > 0 {
				c.send(test.send)
			}
			received := c.readToEnd()
			rest := bytes.NewReader(received)
			if test.offered {
				var offer wire.Offer
				m, err := wire.Read(rest, wire.MaxMessage)
				if err = errors.Join(err, m.Decode(&offer)); err != nil || len(offer.Keys) != 1 || !bytes.Equal(offer.Keys[0], h.Key.Marshal()) {
					t.Errorf("%s: offered %x, %v", name, offer.Keys, err)
				}
			}
			if end := received[len(received)-rest.Len():]; len(end) > 0 && !bytes.Equal(end, denied) {
				t.Errorf("%s: received %x", name, received)
			}
			c.wantLogged("")
		})
	}
	x.Run("echo st''ill in", "still in")
	wg.Wait()
	if d := time.Since(start); d < timeout {
		t.Errorf("disconnected after %v, before auth_timeout", d)
	}
	x.Run("echo and st''ill", "and still")
	wantOutput(t, h.QT("connect", "echo in"), "in\n")
}

// max_sessions_per_user and max_buffer_total refuse new sessions.
func TestSessionLimits(t *testing.T) {
	h := newHost(t)
	h.Settings["max_sessions_per_user"] = "1"
	h.Start()
	h.Shell(h.Addr, "-s", "one")
	wantError(t, h.QT("connect", "true"), "has 1 sessions already, and max_sessions_per_user is 1")
	wantError(t, h.Via(h.Addr, "connect", []string{"-s", "bad name"}, "true"), "cannot be a session's name")
	h.Settings["max_buffer_total"] = `"1B"`
	h.Settings["max_sessions_per_user"] = "5"
	h.Stop(syscall.SIGTERM)
	h.Start()
	wantError(t, h.QT("connect", "true"), "max_buffer_total is 1B")
}
