//go:build linux || darwin

package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/migrate/carrier/sealed"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// interceptor is the address to which the attacker has led the client.
var interceptor = netip.MustParseAddrPort("10.0.0.3:4433")

// intercept accepts one connection of a client as the host: with TLS tickets of the host's
// stolen ticket keys, and without its host key.
func (h *host) intercept() <-chan *quic.Conn {
	own, err := auth.LoadOrCreateHostKey(filepath.Join(h.t.TempDir(), "host_key"))
	if err != nil {
		h.t.Fatal(err)
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{wire.ALPN},
		GetCertificate: auth.Certificate([]*auth.HostKey{own}, nil)}
	conf.SetSessionTicketKeys(h.server.state.Load().TicketKeys)
	socket := h.net.Listen(interceptor)
	listener, err := quic.Listen(socket, quic.ListenConfig{TLS: conf})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { listener.Close(); socket.Close() })
	accepted := make(chan *quic.Conn, 1)
	go func() {
		incoming, err := listener.Accept(context.Background())
		if err != nil {
			return
		}
		if c, err := incoming.Conn(context.Background()); err == nil {
			accepted <- c
		}
	}()
	return accepted
}

// A man in the middle who has stolen the server's ticket keys can pass a client's early data
// on, and no more: he reads neither input nor output, adds no input, and shows the client no
// output.
func TestStolenTicketKeys(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		accepted := h.intercept()
		victim, err := quic.DialEarly(context.Background(), h.listen(), interceptor, h.tls)
		if err != nil {
			t.Fatal(err)
		}
		defer victim.Close()
		ack := buffer.AppendFrame(nil, buffer.Frame{Type: session.Unsequenced, Payload: []byte{1 << 1, 1, 0xff, 0xff, 3}})
		lanes := h.resume(victim, attached, 1, append(typed(1, "password,"), ack...))
		toVictim := <-accepted
		resumption, err := wire.Read(toVictim, wire.MaxMessage)
		if err != nil || resumption.Type != wire.TypeResume {
			t.Fatalf("the attacker reads %+v, %v", resumption, err)
		}
		early := make([]byte, 1000)
		n, err := toVictim.Read(early)
		if err != nil || bytes.Contains(early[:n], []byte("password")) {
			t.Errorf("the attacker reads %q, %v", early[:n], err)
		}
		h.wantEarly(victim)

		// The host takes what the victim has sent, and nothing else.
		toHost, _, _ := h.dial(quic.Dial, false)
		if err := wire.Write(toHost, resumption); err != nil {
			t.Fatal(err)
		}
		h.want("the proof is good", toHost, wire.TypeResumed)
		if _, err := toHost.Write(early[:n]); err != nil {
			t.Fatal(err)
		}
		h.input.await(t, "password,", 1)
		toHost.SetDeadline(time.Now().Add(time.Minute))
		h.program.Print([]byte(strings.Repeat("private", 1000)))
		output := make([]byte, 7000)
		if _, err := io.ReadFull(toHost, output); err != nil || bytes.Contains(output, []byte("private")) {
			t.Errorf("the attacker reads %q, %v", output, err)
		}
		toHost.SendDatagram(typed(2, "evil,"))
		toHost.Write(typed(2, "evil,"))
		io.Copy(io.Discard, toHost) // until the host closes the carrier
		if got := h.input.String(); got != "password," {
			t.Errorf("the program read %q", got)
		}

		// The victim believes nothing that is not the holder's.
		if err := wire.Send(toVictim, &wire.Resumed{}); err != nil {
			t.Fatal(err)
		}
		toVictim.Write(buffer.AppendFrame(nil, buffer.Frame{Seq: 1, Type: wire.Stdout, Payload: []byte("sudo password:")}))
		h.want("the attacker's answer", victim, wire.TypeResumed)
		if n, err := lanes.Read(make([]byte, 100)); !errors.Is(err, sealed.ErrForged) {
			t.Errorf("the victim reads %d bytes, %v", n, err)
		}
		toVictim.Close()
	})
}
