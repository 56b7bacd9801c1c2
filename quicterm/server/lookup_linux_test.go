package server

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The end of the daemon does not wait for a name service that does not answer.
func TestEndDuringLookup(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	script := "#!/bin/sh\n: > " + asked + "\nexec /bin/sleep 60\n"
	if err := os.WriteFile(filepath.Join(dir, "getent"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := configs.DefaultServer()
	settings.StateDir, settings.RuntimeDir = dir, dir
	s, err := New(Config{Settings: settings, Granted: true, Holders: holdertest.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	s.names.Dirs = []string{dir}

	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := socket.LocalAddr().(*net.UDPAddr).AddrPort()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, socket) }()
	login(t, addr, "jane@corp")
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(asked); err == nil {
			break
		} else if time.Since(start) > 10*time.Second {
			t.Fatal("the name service is not asked")
		}
	}
	start := time.Now()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("the daemon took %v to end", d)
	}
}

// login begins a login that makes the daemon look an account up.
func login(t *testing.T, addr netip.AddrPort, user string) {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key := make([]byte, 8)
	c, err := quic.Dial(t.Context(), socket, addr, clientTLS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for _, v := range []wire.Body{&wire.Hello{User: user, Keys: [][]byte{key}}, &wire.List{}} {
		if err := wire.Send(c, v); err != nil {
			t.Fatal(err)
		}
	}
}
