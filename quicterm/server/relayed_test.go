//go:build linux || darwin

package server

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/tcp"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// relayTo connects to the daemon as a hub does for a caller, without TLS.
func (h *tcpHost) relayTo(caller privsep.Caller) net.Conn {
	h.t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	ends := make([]net.Conn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "relayed")
		if ends[i], err = net.FileConn(f); err != nil {
			h.t.Fatal(err)
		}
		f.Close()
	}
	near, far := ends[0], ends[1]
	go h.server.ServeRelayed(h.t.Context(), far, caller)
	h.t.Cleanup(func() { near.Close() })
	near.SetDeadline(time.Now().Add(patience))
	return near
}

// relayed connects to the daemon as a client of a hub does.
func (h *tcpHost) relayed(caller privsep.Caller) (*tcp.Conn, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	c, err := tcp.Dial(ctx, func(context.Context, string, string) (net.Conn, error) { return h.relayTo(caller), nil }, h.addr, h.tls)
	if err == nil {
		h.t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(patience))
	}
	return c, err
}

// A client that a hub relays logs in, attaches and resumes as one over TCP. It is at no address.
func TestSessionThroughHub(t *testing.T) {
	h := onTCP(t, 8)
	c, err := h.relayed(privsep.Caller{1})
	if err != nil {
		t.Fatal(err)
	}
	h.send(c, h.login(&wire.Attach{PTY: true})...)
	var attached wire.Attached
	m, err := wire.Read(c, wire.MaxMessage)
	if err == nil {
		err = m.Decode(&attached)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.log.await(t, "@hub", 1)
	c.Close()
	again, err := h.relayed(privsep.Caller{1})
	if err != nil {
		t.Fatal(err)
	}
	h.resume(again, attached, 1, typed(1, "x"))
	h.input.await(t, "x", 1)
}

// Strangers that a hub brings, whoever it says that they are, keep no client out that connects itself. Each caller has
// the limits of a source of its own.
func TestStrangersThroughHub(t *testing.T) {
	h := onTCP(t, 8)
	for n := range 40 {
		h.relayTo(privsep.Caller{byte(n), 7})
	}
	c := h.dial(localhost)
	h.send(c, h.login(&wire.List{})...)
	h.want("a list", c, wire.TypeListing)
	if sourceOf(privsep.Caller{1}) == sourceOf(privsep.Caller{2}) || sourceOf(privsep.Caller{0xff}).As16()[0]>>5 != 5 {
		t.Error("callers are no sources apart from those of the internet")
	}
}
