//go:build linux

package main

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
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
)

// bareServerEnv makes this program a server of one bare QUIC stream, in a process
// of its own as the daemon is.
const bareServerEnv = "QUICTERM_BENCH_BARE_SERVER"

const bareProtocol = "bare"

// bareServer prints its address and writes to the first stream that is opened
// until the client goes.
func bareServer(w io.Writer) error {
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
	transport := &quic.Transport{Conn: &carrier.Socket{UDPConn: udp}}
	defer transport.Close()
	listener, err := transport.Listen(&tls.Config{
		NextProtos:     []string{bareProtocol},
		GetCertificate: auth.Certificate([]*auth.HostKey{key}),
	}, carrier.ServerConfig())
	if err != nil {
		return err
	}
	fmt.Fprintln(w, udp.LocalAddr())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := listener.Accept(ctx)
	if err != nil {
		return err
	}
	stream, err := conn.AcceptStream(ctx)
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

// bareThroughput returns how many bytes per second a QUIC stream of the same
// configuration brings from another process, with nothing done to them.
func bareThroughput(m *measurement) float64 {
	const size = 60 << 20
	exe, err := os.Executable()
	if err != nil {
		m.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), bareServerEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		m.Fatal(err)
	}
	defer cmd.Wait()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		m.Fatal(err)
	}
	socket, err := carrier.ListenUDP("")
	if err != nil {
		m.Fatal(err)
	}
	link, err := carrier.DialQUIC(context.Background(), socket, netip.MustParseAddrPort(strings.TrimSpace(line)),
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{bareProtocol}})
	if err != nil {
		m.Fatal(err)
	}
	defer link.Close()
	if _, err := link.Write([]byte{0}); err != nil {
		m.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	if _, err := link.Read(buf); err != nil {
		m.Fatal(err)
	}
	start := time.Now()
	n := 0
	for n < size {
		read, err := link.Read(buf)
		if err != nil {
			m.Fatal(err)
		}
		n += read
	}
	return float64(n) / time.Since(start).Seconds()
}
