//go:build linux || darwin

package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A localPeer is a process that asks a daemon for grants.
type localPeer struct {
	t    *testing.T
	path string
}

// ask sends messages on a new connection, and returns that and the first answer.
func (p localPeer) ask(messages ...wire.Body) (*net.UnixConn, wire.Message) {
	p.t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: p.path, Net: "unix"})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	for _, m := range messages {
		if err := wire.Send(c, m); err != nil {
			p.t.Fatal(err)
		}
	}
	m, err := wire.Read(c, wire.MaxMessage)
	if err != nil {
		p.t.Fatal(err)
	}
	return c, m
}

// carrier asks for a carrier and sends messages on it. It returns the grant, and the carrier.
func (p localPeer) carrier(client string, messages ...wire.Body) (*wire.Grant, *net.UnixConn) {
	p.t.Helper()
	ask := &wire.Ask{Carrier: true, Client: client, Server: "192.0.2.1:22"}
	c, m := p.ask(append([]wire.Body{ask}, messages...)...)
	grant := new(wire.Grant)
	if err := m.Decode(grant); err != nil {
		p.t.Fatal(err)
	}
	return grant, c
}

// answer reads a message from a carrier.
func (p localPeer) answer(c *net.UnixConn, into wire.Body) {
	p.t.Helper()
	m, err := wire.Read(c, wire.MaxMessage)
	if err == nil {
		err = m.Decode(into)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// A connection to the grant socket becomes the carrier of a client that needs no login.
func TestLocalClient(t *testing.T) {
	holders := holdertest.New(func(launch *wire.Launch) holder.Program { return programtest.NewEcho(launch.PTY) })
	defer holders.Wait()
	defer holders.Kill()
	var log notebook
	settings := configs.DefaultServer()
	holders.Change = func(launch *wire.Launch) { launch.ExitedTTL = time.Millisecond }
	cfg := Config{Settings: settings, Granted: true, Holders: holders, Software: "qtd test",
		Log: slog.New(slog.NewTextHandler(&log, nil))}
	p := localPeer{t, grantingDaemon(t, cfg)}

	grant, c := p.carrier("192.0.2.7:1000", &wire.Hello{Software: "qt test"}, &wire.Attach{PTY: true})
	if len(grant.Token) > 0 || grant.Software != "qtd test" || grant.Protocol != wire.ALPN {
		t.Errorf("grant %+v; want no token, the daemon's name and the protocol", grant)
	}
	var attached wire.Attached
	p.answer(c, &attached)

	_, second := p.carrier("not an address", resume(attached, 1))
	p.answer(second, &wire.Resumed{})

	clients := func() string {
		t.Helper()
		_, c := p.carrier("", &wire.Hello{}, &wire.List{})
		var listing wire.Listing
		p.answer(c, &listing)
		if len(listing.Sessions) != 1 {
			t.Fatalf("%d sessions", len(listing.Sessions))
		}
		info, err := wire.DecodeInfo(listing.Sessions[0])
		if err != nil {
			t.Fatal(err)
		}
		all := ""
		for _, m := range info.Members {
			all += " " + m.Client
		}
		return all
	}
	await := func(client string) {
		t.Helper()
		for start := time.Now(); !strings.HasSuffix(clients(), client); time.Sleep(time.Millisecond) {
			if time.Since(start) > patience {
				t.Fatalf("the session's client is %q, want %s", clients(), client)
			}
		}
	}
	await("@192.0.2.7") // as sshd names it
	_, third := p.carrier("\x1b[2J", &wire.Hello{}, &wire.Attach{Mode: wire.ModeAttach, Session: attached.Name, PTY: true})
	p.answer(third, &attached)
	await("@ssh")
	for _, words := range []string{"proof=ssh", "@192.0.2.7:1000"} {
		log.await(t, words, 1)
	}

	// The holder sends everything on the stream, and the client's end ends the carrier.
	third.CloseWrite()
	if _, err := io.Copy(io.Discard, third); err != nil {
		t.Errorf("after the client's end: %v", err)
	}
}

// What begins neither a login nor a resume is denied, as on any other carrier.
func TestLocalClientOutOfOrder(t *testing.T) {
	p := localPeer{t, grantingDaemon(t, Config{Granted: true})}
	for _, first := range []wire.Body{&wire.List{}, &wire.Token{}, &wire.Ask{}} {
		_, c := p.carrier("", first)
		p.answer(c, &wire.Denied{})
	}
}

// A granted daemon listens for other machines from the first carrier on, on another port than
// for this machine.
func TestGrantedDaemonOpensUp(t *testing.T) {
	p := localPeer{t, grantingDaemon(t, Config{Granted: true})}
	port := func(m wire.Message) uint16 {
		t.Helper()
		var grant wire.Grant
		if err := m.Decode(&grant); err != nil {
			t.Fatal(err)
		}
		a, err := netip.ParseAddrPort(grant.Address)
		if err != nil {
			t.Fatal(err)
		}
		return a.Port()
	}
	free := func(port uint16) bool {
		c, err := net.ListenUDP("udp", &net.UDPAddr{Port: int(port)})
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	elsewhere := func(port uint16) bool { // of another address of this machine than the first
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 9), Port: int(port)})
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	_, m := p.ask(&wire.Ask{})
	if local := port(m); free(local) || !elsewhere(local) {
		t.Errorf("port %d is not open on the loopback address alone", local)
	}
	_, m = p.ask(&wire.Ask{Client: "192.0.2.1:1"})
	if public := port(m); elsewhere(public) {
		t.Errorf("port %d is not open on all addresses", public)
	}
	_, again := p.ask(&wire.Ask{Carrier: true})
	if port(again) != port(m) {
		t.Errorf("port %d, then %d; want one", port(m), port(again))
	}
}

// grantingDaemon runs a granted daemon on the loopback interface until the test ends, and returns
// the path of its socket for grants.
func grantingDaemon(t *testing.T, cfg Config) string {
	t.Helper()
	if cfg.Settings == nil {
		cfg.Settings = configs.DefaultServer()
	}
	dir := reachableDir(t)
	cfg.Settings.StateDir, cfg.Settings.RuntimeDir = filepath.Join(dir, "state"), filepath.Join(dir, "run")
	if cfg.Holders == nil {
		cfg.Holders = holdertest.New(nil)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error)
	go func() { done <- s.ListenAndServe(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	base, err := rundir.Base(cfg.Settings.RuntimeDir).Make()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(base, rundir.DaemonSocket)
}
