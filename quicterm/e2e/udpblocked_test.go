//go:build linux || darwin

package e2e

import (
	"io"
	"net"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// proxyBoth returns a proxy for the daemon of a host, which passes TCP too, at the same port.
// What is set for the proxy is for UDP alone.
func proxyBoth(t *testing.T, h *rig.Host) *netem.Proxy {
	var p *netem.Proxy
	var l *net.TCPListener
	for tries := 1; l == nil; tries++ { // another process may have the port for TCP
		p = h.Proxy(netem.Config{})
		var err error
		if l, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(p.Addr())); err != nil && tries == 10 {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	pass := func(to, from *net.TCPConn) {
		io.Copy(to, from)
		to.CloseWrite()
	}
	wg.Go(func() {
		for {
			client, err := l.AcceptTCP()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer client.Close()
				daemon, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(h.Addr))
				if err != nil {
					return
				}
				defer daemon.Close()
				wg.Go(func() { pass(daemon, client) })
				pass(client, daemon)
			})
		}
	})
	return p
}

// UDP is blocked before a login, and while a shell is typed into, and is free again.
func TestUDPBlocked(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := proxyBoth(t, h)
	p.Set(netem.Config{Down: true})
	if out, err := h.Via(p.Addr(), "connect", nil, "echo over TCP").CombinedOutput(); err != nil || string(out) != "over TCP\n" {
		t.Fatalf("%q, %v", out, err)
	}
	p.Set(netem.Config{})
	x := h.Shell(p.Addr())
	x.Run("echo ty''ped", "typed")
	status := func(want string) bool {
		x.Send("\r~#")
		return x.Expect(`carrier +(quic|tcp \(udp blocked\))`)[1] == want
	}
	awaitStatus := func(want string) {
		t.Helper()
		for begun := time.Now(); !status(want); time.Sleep(time.Second) {
			if time.Since(begun) > rig.Patience+15*time.Second {
				t.Fatalf("the session is not on %s", want)
			}
		}
	}
	awaitStatus("quic") // on a busy machine, TCP may win the login
	p.Set(netem.Config{Down: true})
	x.Send("\r")
	x.Run("echo bl''ocked", "blocked")
	awaitStatus("tcp (udp blocked)") // the echo may come over TCP before QUIC is given up
	p.Set(netem.Config{})
	awaitStatus("quic")
	x.Send("\r")
	x.Run("echo fr''ee", "free")
}

// A pipe continues with every byte when UDP is blocked, and free again, and blocked.
func TestPipeWhileUDPIsBlocked(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := proxyBoth(t, h)
	in := random(8 << 20)
	cmd := h.Via(p.Addr(), "connect", nil, "cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := new(rig.Output)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() }) // if the test ends before the client
	quarter := len(in) / 4
	anything := regexp.MustCompile("(?s).")
	for i := range 4 {
		p.Set(netem.Config{Down: i%2 == 1})
		if _, err := stdin.Write(in[i*quarter : (i+1)*quarter]); err != nil {
			t.Fatal(err)
		}
		out.Await(t, i*quarter, anything) // so that the events are spread over the stream
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if out.String() != string(in) {
		t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(in))
	}
}
