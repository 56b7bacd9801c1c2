//go:build linux

// Package barestream is the least that brings bytes from another process over QUIC: one
// stream with the configuration of quicterm's carriers, and nothing done to its bytes.
package barestream

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/auth"
)

// protocol is the ALPN name.
const protocol = "bare"

// Serve writes its address to w, and then zeros to the first stream that a client opens,
// until the client is gone.
func Serve(w io.Writer) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	key, err := auth.NewHostKey(private)
	if err != nil {
		return err
	}
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer udp.Close()
	listener, err := quic.Listen(&quic.Socket{UDPConn: udp}, quic.ListenConfig{TLS: &tls.Config{
		NextProtos:     []string{protocol},
		GetCertificate: auth.Certificate([]*auth.HostKey{key}, nil),
	}})
	if err != nil {
		return err
	}
	defer listener.Close()
	fmt.Fprintln(w, udp.LocalAddr())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := listener.Accept(ctx)
	if err != nil {
		return err
	}
	stream, err := conn.Conn(ctx)
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		if _, err := stream.Write(buf); err != nil {
			return nil
		}
	}
}

// Rate returns how many bytes per second come from a process that runs Serve.
func Rate(t *measure.T, server *exec.Cmd, size int) float64 {
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	socket, err := quic.ListenUDP("")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := quic.Dial(context.Background(), socket, netip.MustParseAddrPort(strings.TrimSpace(line)),
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	if _, err := conn.Read(buf); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	n := 0
	for n < size {
		read, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		n += read
	}
	return float64(n) / time.Since(start).Seconds()
}
