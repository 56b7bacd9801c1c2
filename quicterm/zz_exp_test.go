//go:build linux

package quicterm

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"testing"
	"time"
	"fmt"
	"net"
	"net/netip"

	"github.com/quic-go/quic-go"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func TestZZ(t *testing.T) {
	set := configs.DefaultServer()
	set.AuthTimeout.Duration = 2 * time.Second
	set.Listen = []string{"127.0.0.1:45555"}
	set.RuntimeDir = t.TempDir()
	set.StateDir = t.TempDir()
	s, err := NewServer(ServerConfig{Settings: set, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})), Software: "x"})
	if err != nil { t.Fatal(err) }
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan struct{})
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, func() { close(ready) }) }()
	<-ready
	udp, _ := net.ListenUDP("udp", nil)
	tr := &quic.Transport{Conn: udp}
	conn, err := tr.Dial(ctx, net.UDPAddrFromAddrPort(mustAP("127.0.0.1:45555")), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}}, &quic.Config{InitialStreamReceiveWindow: 1, MaxStreamReceiveWindow: 1, KeepAlivePeriod: time.Second})
	if err != nil { t.Fatal(err) }
	st, _ := conn.OpenStream()
	start := time.Now()
	wire.Send(st, &wire.Hello{})
	wire.Send(st, &wire.Ticket{Ticket: []byte("bad")})
	select {
	case <-conn.Context().Done():
		fmt.Println("closed after", time.Since(start))
	case <-time.After(15 * time.Second):
		fmt.Println("STILL OPEN after", time.Since(start), "unauthenticated:", s.unauthenticated.Load())
	}
	conn.CloseWithError(0, "")
	cancel()
	<-done
}

func mustAP(s string) (ap netip.AddrPort) { ap, _ = netip.ParseAddrPort(s); return }
