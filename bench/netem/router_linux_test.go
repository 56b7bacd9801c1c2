package netem_test

import (
	"fmt"
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
