//go:build linux || darwin

package server

import (
	"errors"
	"math/rand/v2"
	"net"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/systemd"
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

// onlySocket returns the address of the only socket.
func onlySocket(t *testing.T, l *sockets, err error) *net.UDPAddr {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(l.open) != 1 {
		t.Fatalf("%d sockets, want 1", len(l.open))
	}
	for _, c := range l.open {
		return c.LocalAddr().(*net.UDPAddr)
	}
	return nil
}

func listenUDP(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
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
	if a := onlySocket(t, l, err); a.Port < firstGrantedPort || a.Port > lastGrantedPort || !a.IP.IsLoopback() {
		t.Errorf("it has %v", a)
	}
}

// A socket of a unit replaces the settings.
func TestSocketOfUnit(t *testing.T) {
	c := listenUDP(t)
	l, err := openSockets(t, Config{Passed: []systemd.Socket{{Conn: c, Name: "qtd.socket"}}}, "127.0.0.1:0")
	if a := onlySocket(t, l, err); a.String() != c.LocalAddr().String() {
		t.Errorf("it has %v, want %v", a, c.LocalAddr())
	}
}

// A socket that was kept is used if the settings name its address, else it is given back.
func TestKeptSocket(t *testing.T) {
	c := listenUDP(t)
	kept := func() Config {
		return Config{Passed: []systemd.Socket{{Conn: c, Name: bindingOf(c).keptName()}}}
	}
	address := c.LocalAddr().String()
	l, err := openSockets(t, kept(), address)
	if a := onlySocket(t, l, err); a.String() != address {
		t.Errorf("it has %v, want %v", a, address)
	}
	l.close()
	c = listenUDP(t)
	l, err = openSockets(t, kept(), "127.0.0.1:0")
	if a := onlySocket(t, l, err); a.String() == c.LocalAddr().String() {
		t.Errorf("it has %v, which the settings do not name", a)
	}
	if _, err := c.WriteTo(nil, c.LocalAddr()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the other one: %v, want it closed", err)
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
	if a := onlySocket(t, l, err); a.String() != free {
		t.Errorf("it has %v, want %v", a, free)
	}
	if a, err := l.local(); err != nil || a.String() != free {
		t.Errorf("a grant names %v, %v", a, err)
	}
	taken.Close()
	if err := l.fill(); err != nil || !l.whole || len(l.open) != 2 {
		t.Errorf("later: %v, %d sockets", err, len(l.open))
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
		taken.Close()
		if err := l.fill(); err != nil || len(l.open) != 1 {
			t.Errorf("later: %v, %d sockets", err, len(l.open))
		}
		return
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("%v, want %v", err, syscall.EADDRINUSE)
	}
}
