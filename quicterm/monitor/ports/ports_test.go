//go:build linux || darwin

package ports

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/quicterm/machine/systemd"
)

// openSockets opens the sockets of a daemon, and closes them when the test ends.
func openSockets(t *testing.T, cfg Config, listen ...string) (*Sockets, error) {
	t.Helper()
	cfg.Listen, cfg.Log = listen, slog.New(slog.DiscardHandler)
	l, err := Open(cfg)
	if l != nil {
		t.Cleanup(l.Close)
	}
	return l, err
}

// at returns the addresses of the sockets of a protocol.
func at(l *Sockets, protocol string) (found []netip.AddrPort) {
	for _, c := range l.open {
		if b := bindingOf(c); b.protocol() == protocol {
			found = append(found, b.address)
		}
	}
	return found
}

// onlySocket returns the address of the only UDP socket, and of the only TCP listener.
func onlySocket(t *testing.T, l *Sockets, err error) netip.AddrPort {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	udp, tcp := at(l, "udp"), at(l, "tcp")
	if len(udp) != 1 || !slices.Equal(udp, tcp) {
		t.Fatalf("sockets at %v, and for TCP at %v", udp, tcp)
	}
	return udp[0]
}

func listenUDP(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", ownPort())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func listenTCP(t *testing.T, a netip.AddrPort) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(a))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// ownPort returns an address that no other test uses, and whose port the system gives to
// nobody who asks for any: tests close it and open it again.
func ownPort() *net.UDPAddr {
	a := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 20_000 + rand.IntN(10_000)}
	if runtime.GOOS == "linux" { // which has all of 127.0.0.0/8
		a.IP = net.IPv4(127, byte(1+rand.IntN(254)), byte(rand.IntN(256)), byte(1+rand.IntN(254)))
	}
	return a
}

// A granted daemon keeps away from the port of root's daemon, whatever the settings say.
func TestGrantedDaemonTakesNoUsualPort(t *testing.T) {
	l, err := openSockets(t, Config{Granted: true}, "127.0.0.1:4433")
	if a := onlySocket(t, l, err); !IsGranted(a.Port()) || !a.Addr().IsLoopback() {
		t.Errorf("it has %v", a)
	}
}

// An address that the setting names twice is opened once.
func TestAddressNamedTwice(t *testing.T) {
	own := ownPort().String()
	l, err := openSockets(t, Config{}, own, own)
	if a := onlySocket(t, l, err); a.String() != own {
		t.Errorf("it has %v, want %s", a, own)
	}
}

// A socket that was kept is used if the settings name its address, else it is given back.
func TestKeptSocket(t *testing.T) {
	kept := func() (Config, netip.AddrPort, *net.UDPConn, *net.TCPListener) {
		udp := listenUDP(t)
		tcp := listenTCP(t, bindingOf(udp).address)
		return Config{Passed: []systemd.Conn{udp, tcp}}, bindingOf(udp).address, udp, tcp
	}
	cfg, address, _, _ := kept()
	l, err := openSockets(t, cfg, address.String())
	if a := onlySocket(t, l, err); a != address {
		t.Errorf("it has %v, want %v", a, address)
	}
	l.Close()
	cfg, address, udp, tcp := kept()
	l, err = openSockets(t, cfg, ownPort().String())
	if a := onlySocket(t, l, err); a == address {
		t.Errorf("it has %v, which the settings do not name", a)
	}
	if _, err := udp.WriteTo(nil, udp.LocalAddr()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the other UDP socket: %v, want it closed", err)
	}
	if _, err := tcp.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the other TCP listener: %v, want it closed", err)
	}
}

// A daemon that cannot have one of its ports says which and why, opens nothing, and does not start.
func TestPortTaken(t *testing.T) {
	for _, protocol := range []string{"udp", "tcp"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			var taken interface{ Close() error }
			var address netip.AddrPort
			if protocol == "udp" {
				c := listenUDP(t)
				taken, address = c, bindingOf(c).address
			} else {
				l := listenTCP(t, ownPort().AddrPort())
				taken, address = l, bindingOf(l).address
			}
			free := ownPort()
			l, err := openSockets(t, Config{}, free.String(), address.String())
			if l != nil || !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), address.String()) {
				t.Fatalf("got %v, %v", l, err)
			}
			want := fmt.Sprintf("taken: %s %v, by process %d of user id %d", protocol, address, os.Getpid(), os.Getuid())
			if runtime.GOOS == "linux" && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v; want %s", err, want)
			}
			taken.Close()
			l, err = openSockets(t, Config{}, free.String(), address.String())
			if err != nil || len(at(l, "udp")) != 2 || len(at(l, "tcp")) != 2 {
				t.Errorf("later: %v", err)
			}
		})
	}
}

// A client's connection has one path: what it sends on others would count for no source.
func TestOnePathForTCP(t *testing.T) {
	l, err := openSockets(t, Config{}, ownPort().String())
	var d net.Dialer
	d.SetMultipathTCP(true)
	c, err := d.DialContext(t.Context(), "tcp", onlySocket(t, l, err).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if multipath, err := c.(*net.TCPConn).MultipathTCP(); multipath || err != nil {
		t.Errorf("a client may use Multipath TCP: %t, %v", multipath, err)
	}
}

// A granted daemon takes another port than one that is taken for TCP alone.
func TestGrantedPortTakenForTCP(t *testing.T) {
	first, err := openSockets(t, Config{Granted: true})
	taken := onlySocket(t, first, err)
	first.open[0].Close() // its port is free for UDP now
	l, err := openSockets(t, Config{Granted: true})
	if a := onlySocket(t, l, err); a == taken {
		t.Errorf("a granted daemon has %v, which is taken for TCP", a)
	}
}
