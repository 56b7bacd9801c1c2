//go:build linux || darwin

package monitor

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
)

// openSockets opens the sockets of a daemon, and closes them when the test ends.
func openSockets(t *testing.T, cfg Config, listen ...string) (*sockets, error) {
	t.Helper()
	cfg.Settings = configs.DefaultServer()
	cfg.Settings.Listen = listen
	cfg.Settings.StateDir, cfg.Settings.RuntimeDir = filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "run")
	cfg.Holders = holdertest.New(nil)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.newSockets()
	if l != nil {
		t.Cleanup(l.close)
	}
	return l, err
}

// at returns the addresses of the sockets of a protocol.
func at(l *sockets, protocol string) (found []netip.AddrPort) {
	for _, c := range l.open {
		if b := bindingOf(c.socket); b.protocol() == protocol {
			found = append(found, b.address)
		}
	}
	return found
}

// onlySocket returns the address of the only UDP socket, and of the only TCP listener.
func onlySocket(t *testing.T, l *sockets, err error) netip.AddrPort {
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
	if a := onlySocket(t, l, err); a.Port() < firstGrantedPort || a.Port() > lastGrantedPort || !a.Addr().IsLoopback() {
		t.Errorf("it has %v", a)
	}
}

// A socket of a unit replaces the settings. The daemon opens that of the other protocol beside it.
func TestSocketOfUnit(t *testing.T) {
	tcpOnly := listenTCP(t, ownPort().AddrPort())
	both := listenUDP(t)
	beside := listenTCP(t, bindingOf(both).address)
	for _, passed := range [][]systemd.Conn{{listenUDP(t)}, {tcpOnly}, {both, beside}} {
		cfg, want := Config{}, bindingOf(passed[0]).address
		for _, c := range passed {
			cfg.Passed = append(cfg.Passed, systemd.Socket{Conn: c, Name: "qtd.socket"})
		}
		l, err := openSockets(t, cfg, ownPort().String())
		if a := onlySocket(t, l, err); a != want {
			t.Errorf("it has %v, want %v", a, want)
		}
		if err := l.fill(); err != nil || !l.whole {
			t.Errorf("something is missing: %v", err)
		}
	}
}

// A socket that was kept is used if the settings name its address, else it is given back.
func TestKeptSocket(t *testing.T) {
	kept := func() (Config, netip.AddrPort, *net.UDPConn, *net.TCPListener) {
		udp := listenUDP(t)
		tcp := listenTCP(t, bindingOf(udp).address)
		return Config{Passed: []systemd.Socket{
			{Conn: udp, Name: bindingOf(udp).keptName()}, {Conn: tcp, Name: bindingOf(tcp).keptName()},
		}}, bindingOf(udp).address, udp, tcp
	}
	cfg, address, _, _ := kept()
	l, err := openSockets(t, cfg, address.String())
	if a := onlySocket(t, l, err); a != address {
		t.Errorf("it has %v, want %v", a, address)
	}
	l.close()
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

// A daemon serves what it can get, and takes the rest as soon as it can.
func TestSomeAddressesTaken(t *testing.T) {
	free := ownPort().String()
	taken, err := net.ListenUDP("udp", ownPort())
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	l, err := openSockets(t, Config{}, taken.LocalAddr().String(), free)
	if err != nil {
		t.Fatal(err)
	}
	if udp := at(l, "udp"); len(udp) != 1 || udp[0].String() != free {
		t.Errorf("it has %v, want %v", udp, free)
	}
	if a, err := l.local(); err != nil || a.String() != free {
		t.Errorf("a grant names %v, %v", a, err)
	}
	taken.Close()
	if err := l.fill(); err != nil || !l.whole || len(at(l, "udp")) != 2 || len(at(l, "tcp")) != 2 {
		t.Errorf("later: %v, %d sockets", err, len(l.open))
	}
}

// health asks the daemon's control socket whether it takes clients.
func (l *sockets) health() *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	l.server.controlling().ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
	return w
}

// A daemon whose port is taken for TCP serves UDP, says so once, and takes the port when it can. A
// granted daemon takes another port.
func TestPortTakenForTCP(t *testing.T) {
	taken := listenTCP(t, ownPort().AddrPort())
	address := bindingOf(taken).address
	var log notebook
	l, err := openSockets(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, address.String())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if w := l.health(); w.Code != http.StatusServiceUnavailable || !strings.HasPrefix(w.Body.String(), "no TCP socket is open") {
			t.Errorf("health %d: %s", w.Code, w.Body)
		}
		if udp, tcp := at(l, "udp"), at(l, "tcp"); len(udp) != 1 || udp[0] != address || len(tcp) != 0 {
			t.Errorf("it has %v, and for TCP %v", udp, tcp)
		}
		l.fill()
	}
	if n := strings.Count(log.String(), "protocol=tcp"); n != 1 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
	taken.Close()
	if err := l.fill(); err != nil || !l.whole || !slices.Equal(at(l, "tcp"), []netip.AddrPort{address}) {
		t.Errorf("later: %v, %v", err, at(l, "tcp"))
	}
	if w := l.health(); w.Code != http.StatusOK {
		t.Errorf("later, health %d: %s", w.Code, w.Body)
	}

	udp, tcp, err := listenGranted(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	if err != nil {
		t.Fatal(err)
	}
	udp.Close() // its port is free for UDP now
	defer tcp.Close()
	l, err = openSockets(t, Config{Granted: true})
	if a := onlySocket(t, l, err); a == bindingOf(tcp).address {
		t.Errorf("a granted daemon has %v, which is taken for TCP", a)
	}
}

// A daemon that can get nothing tells so if a person may have started it; root's waits.
func TestAllAddressesTaken(t *testing.T) {
	taken, err := net.ListenUDP("udp", ownPort())
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	l, err := openSockets(t, Config{}, taken.LocalAddr().String())
	if l != nil && l.server.all {
		if _, err := l.local(); err == nil {
			t.Error("an address for a grant, without a socket")
		}
		if w := l.health(); w.Code != http.StatusServiceUnavailable || !strings.HasPrefix(w.Body.String(), "no UDP socket is open") {
			t.Errorf("without a socket, health %d: %s", w.Code, w.Body)
		}
		taken.Close()
		if err := l.fill(); err != nil || len(at(l, "udp")) != 1 {
			t.Errorf("later: %v, %d sockets", err, len(l.open))
		}
		return
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("%v, want %v", err, syscall.EADDRINUSE)
	}
}
