//go:build linux || darwin

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// serveRaw runs a server with the host's key, which answers each connection with serve.
func serveRaw(t *testing.T, h *rig.Host, serve func(*quic.Conn)) netip.AddrPort {
	t.Helper()
	key, err := auth.LoadHostKey(h.Path("host_key"))
	if err != nil {
		t.Fatal(err)
	}
	socket, err := quic.ListenUDP("")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := quic.Listen(socket, quic.ListenConfig{TLS: &tls.Config{
		NextProtos: []string{wire.ALPN}, GetCertificate: auth.Certificate([]*auth.HostKey{key}, nil),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		listener.Close()
		socket.Close()
	})
	go func() {
		for {
			incoming, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			go func() {
				defer incoming.Close()
				ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
				defer cancel()
				conn, err := incoming.Conn(ctx)
				if err != nil {
					return
				}
				conn.SetDeadline(time.Now().Add(rig.Patience))
				serve(conn)
				conn.CloseWrite()
				select {
				case <-incoming.Context().Done(): // the client has read it all
				case <-ctx.Done():
				}
			}()
		}
	}()
	addr := netip.MustParseAddrPort("127.0.0.1:0")
	addr = netip.AddrPortFrom(addr.Addr(), netip.MustParseAddrPort(socket.LocalAddr().String()).Port())
	h.Know(addr, h.Path("host_key.pub"))
	return addr
}

// controls matches what changes a terminal, or the order of what it shows.
var controls = regexp.MustCompile("[\x00-\x09\x0b-\x1f\x7f-\u009f\u202a-\u202e\u2066-\u2069]")

// Whatever a server says, it cannot control the terminal of who reads it.
func TestServerOfControlCharacters(t *testing.T) {
	h := newHost(t)
	const evil = "\x1b]0;title\a\x1b[2J\u009b6n\u202e\r\n"
	info, err := wire.EncodeInfo(wire.Info{Name: evil, Command: evil, Members: []wire.Member{{Client: evil}}})
	if err != nil {
		t.Fatal(err)
	}
	listing := new(wire.Listing)
	listing.Sessions = append(listing.Sessions, info)
	for _, test := range []struct {
		name   string
		answer wire.Body
		args   []string
		want   string
	}{
		{"error", &wire.Error{Text: "full" + evil}, []string{"connect", "true"}, `^qt: full\?\]0;title\?\?\[2J\?6n\?\n$`},
		{"name", &wire.Attached{Name: "x; rm -rf ~", First: 1, Secret: make([]byte, 32)}, []string{"connect", "true"}, "^qt: the server's answer makes no sense\n$"},
		{"listing", listing, []string{"ls"}, `\?\]0;title`},
		{"listing as JSON", listing, []string{"ls", "--json"}, `\?\]0;title`},
	} {
		addr := serveRaw(t, h, func(c *quic.Conn) {
			for {
				m, err := wire.Read(c, wire.MaxMessage)
				if err != nil {
					return
				}
				if m.Type == wire.TypeAttach || m.Type == wire.TypeList {
					break
				}
			}
			wire.Send(c, test.answer)
		})
		var flags []string
		if test.args[0] == "ls" {
			flags, test.args = test.args[1:], test.args[:1]
		}
		cmd := h.Via(addr, test.args[0], flags, test.args[1:]...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.Run()
		if shown := out.String(); controls.MatchString(shown) || !regexp.MustCompile(test.want).MatchString(shown) {
			t.Errorf("%s: qt shows %q", test.name, shown)
		}
	}
}
