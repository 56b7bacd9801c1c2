//go:build linux || darwin

package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// Malformed and forbidden input ends the connection that it came by, with one line in
// the log. Other sessions do not notice.
func TestBadInput(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "healthy")
	finishPipe := healthyPipe(t, h)

	t.Run("while others work", func(t *testing.T) {
		for name, f := range badMessages {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f(t, h, dialRaw)
			})
		}
		for name, f := range map[string]func(*testing.T, *rig.Host){
			"streams":      badStreams,
			"datagrams":    badDatagrams,
			"packets":      badPackets,
			"grant socket": badGrants,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f(t, h)
			})
		}
	})

	finishPipe()
	x.Run("echo st''ill here", "still here")
	if err := h.Daemon.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the daemon has ended: %v", err)
	}
	if log := h.Log.String(); strings.Contains(log, "panic") || strings.Contains(log, "goroutine ") {
		t.Error("the log has a panic")
	}
}

// badMessages are tests of clients that send such input, over QUIC or TCP.
var badMessages = map[string]func(*testing.T, *rig.Host, rawDialer){
	"before login": badBeforeLogin,
	"signatures":   badSignatures,
	"tokens":       badTokens,
	"requests":     badRequests,
	"resumes":      badResumes,
}

// The same is true over TCP.
func TestBadInputOverTCP(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "healthy")
	t.Run("while others work", func(t *testing.T) {
		for name, f := range badMessages {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f(t, h, dialRawTCP)
			})
		}
	})
	x.Run("echo st''ill here", "still here")
	if log := h.Log.String(); strings.Contains(log, "panic") || strings.Contains(log, "goroutine ") {
		t.Error("the log has a panic")
	}
}

// healthyPipe starts a client that sends input to cat. Finish ends the input and
// checks that every byte came back.
func healthyPipe(t *testing.T, h *rig.Host) (finish func()) {
	cmd := h.QT("connect", "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := new(rig.Output)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() }) // if the test fails before finish
	chunk := random(16 << 10)
	stop := make(chan struct{})
	sent := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			n, err := in.Write(chunk)
			if sent += n; err != nil {
				t.Errorf("write to the healthy pipe: %v", err)
				return
			}
			select {
			case <-stop:
				in.Close()
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return func() {
		t.Helper()
		close(stop)
		wg.Wait()
		if err := cmd.Wait(); err != nil || out.String() != strings.Repeat(string(chunk), sent/len(chunk)) {
			t.Errorf("%v: %d bytes came back, not the %d that were sent", err, out.Len(), sent)
		}
	}
}

// UDP packets that are not QUIC, or only look like it.
func badPackets(t *testing.T, h *rig.Host) {
	c, err := net.Dial("udp", h.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 300 {
		b := random(5 * i)
		if len(b) > 20 {
			switch i % 5 {
			case 0: // long header, version 1
				copy(b, "\xc3\x00\x00\x00\x01")
			case 1: // long header, version negotiation
				copy(b, "\xc3\x00\x00\x00\x00")
			case 2: // long header, unknown version, connection id too long
				copy(b, "\xff\x1a\x2a\x3a\x4a\xff")
			case 3: // short header
				b[0] = 0x40
			}
		}
		c.Write(b)
	}
}

// The grant socket refuses what is no Ask. Such clients, and silent ones, do not disturb a grant.
func badGrants(t *testing.T, h *rig.Host) {
	sockets, _ := filepath.Glob(h.Path("run/qtd.sock"))
	more, _ := filepath.Glob(h.Path("run/*/qtd.sock"))
	sockets = append(sockets, more...)
	if len(sockets) != 1 {
		t.Fatalf("grant sockets %q, want one", sockets)
	}
	for i := range 12 { // few of them fill the log, which is bounded
		c, err := net.Dial("unix", sockets[0])
		if err != nil {
			t.Fatal(err)
		}
		if i%3 != 0 {
			c.Write(random(i * 1000)) // may fail
		}
		if i%2 == 0 {
			c.Close()
			continue
		}
		defer c.Close()
	}
	newToken(t, h)
	if lines := warnings(h, 0, "grant refused"); len(lines) > 8 {
		t.Errorf("%d lines about 8 clients that send no Ask", len(lines))
	}
}
