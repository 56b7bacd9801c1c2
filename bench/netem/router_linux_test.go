package netem_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// TestMain also is what talks in a namespace, in place of the tests.
func TestMain(m *testing.M) {
	switch server := os.Getenv("ROUTER_TEST_SERVER"); {
	case server == "":
		os.Exit(m.Run())
	default:
		if err := talk(server); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// talk sends a packet to a server each time that it reads a byte, and prints from
// where the server saw it.
func talk(server string) error {
	c, err := net.Dial("udp", server)
	if err != nil {
		return err
	}
	buf := make([]byte, 100)
	for {
		if _, err := os.Stdin.Read(buf[:1]); err != nil {
			return nil
		}
		if _, err := c.Write([]byte("who am I?")); err != nil {
			return err
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", buf[:n])
	}
}

// A client in a namespace reaches a server here through a router with a NAT.
func TestRouterNAT(t *testing.T) {
	if err := rig.CanNamespace(); err != nil {
		t.Skip(err)
	}
	router := netem.NewRouter(1)
	t.Cleanup(func() { router.Close() })
	name := fmt.Sprintf("qt%d", os.Getpid())
	attach := func(name, network string) *netem.Port {
		p, err := router.Attach(name, netem.Config{Delay: 10 * time.Millisecond}, netip.MustParsePrefix(network))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	port := attach(name+"c", "10.99.1.0/24")
	port.Translate(netip.MustParseAddr("10.99.1.254"))
	client := rig.NewNamespace(t)
	client.Take(name+"c", "10.99.1.2/32")
	client.IP("route", "add", "default", "dev", name+"c")
	attach(name+"s", "10.99.2.0/24")
	rig.IP(t, "addr", "add", "10.99.2.1", "peer", "10.99.1.254", "dev", name+"s")
	rig.IP(t, "link", "set", name+"s", "up")
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(10, 99, 2, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		buf := make([]byte, 100)
		for {
			_, from, err := server.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			server.WriteToUDPAddrPort([]byte(from.String()), from)
		}
	}()

	cmd := client.In(exec.Command(os.Args[0]))
	cmd.Env = append(os.Environ(), "ROUTER_TEST_SERVER="+server.LocalAddr().String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	ask := func() string {
		t.Helper()
		if _, err := in.Write([]byte{'?'}); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		n, err := out.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	start := time.Now()
	if got := ask(); got != "10.99.1.254:49152\n" {
		t.Errorf("seen from %q", got)
	}
	if took := time.Since(start); took < 40*time.Millisecond {
		t.Errorf("answered after %v, want 40 ms or more", took)
	}
	if got := ask(); got != "10.99.1.254:49152\n" {
		t.Errorf("seen again from %q", got)
	}
	port.Forget()
	if got := ask(); got != "10.99.1.254:49153\n" {
		t.Errorf("seen after the mapping was forgotten from %q", got)
	}
}

// TCP through the router brings what was sent, about as fast as the link is.
func TestRouterTCP(t *testing.T) {
	if err := rig.CanNamespace(); err != nil {
		t.Skip(err)
	}
	const (
		size = 1 << 20
		rate = 20_000_000 // bits per second
	)
	router := netem.NewRouter(1)
	t.Cleanup(func() { router.Close() })
	name := fmt.Sprintf("qt%d", os.Getpid())
	attach := func(name, network string, cfg netem.Config) (*rig.Namespace, *netem.Port) {
		p, err := router.Attach(name, cfg, netip.MustParsePrefix(network+"0/24"))
		if err != nil {
			t.Fatal(err)
		}
		ns := rig.NewNamespace(t)
		ns.Take(name, network+"2/32")
		ns.IP("route", "add", "default", "dev", name)
		return ns, p
	}
	server, _ := attach(name+"d", "10.99.3.", netem.Config{})
	client, port := attach(name+"e", "10.99.4.", netem.Config{Delay: 5 * time.Millisecond, Rate: rate})
	port.Translate(netip.MustParseAddr("10.99.4.254"))
	sent := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(sent)
	var listener net.Listener
	server.Do(func() (err error) {
		listener, err = net.Listen("tcp", "10.99.3.2:0")
		return err
	})
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Write(sent)
	}()
	var c net.Conn
	start := time.Now()
	client.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", listener.Addr().String(), rig.Patience)
		return err
	})
	defer c.Close()
	c.SetDeadline(time.Now().Add(rig.Patience))
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	if !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came, and not what was sent", len(got))
	}
	const least = time.Duration(size * 8 * int64(time.Second) / rate)
	if took < least || took > 10*least {
		t.Errorf("took %v, want %v or a little more", took, least)
	}
	if _, down := port.Arrived(); down < size || down > size*11/10 {
		t.Errorf("%d bytes arrived, want %d and headers", down, size)
	}
}
