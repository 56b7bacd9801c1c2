//go:build linux || darwin

package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A server whose host key was unknown until now learns the keys one by one, up to the one
// that it accepts. A known one learns all at once, for no more than a round trip.
func TestKeysOneByOne(t *testing.T) {
	h := newHost(t)
	var files []string
	for i := range 8 {
		name := fmt.Sprint("key", i)
		h.NewKey(name)
		files = append(files, name)
	}
	connect := func(addr netip.AddrPort, n int, known bool) *exec.Cmd {
		h.Identities = append(slices.Clone(files[:n]), "id")
		if !known {
			h.Write("known_hosts", "")
		}
		cmd := h.Via(addr, "connect", nil, "echo in")
		h.Write("ssh_config_user", "StrictHostKeyChecking accept-new\n"+h.Read("ssh_config_user"))
		return cmd
	}

	// A server that accepts nothing.
	var mu sync.Mutex
	var learned []int // number of keys in each Hello
	addr := serveRaw(t, h, func(c *quic.Conn) {
		for {
			m, err := wire.Read(c, wire.MaxMessage)
			if err != nil {
				return
			}
			hello := new(wire.Hello)
			switch {
			case m.Type == wire.TypeAttach:
				wire.Send(c, &wire.Offer{})
			case m.Decode(hello) == nil:
				mu.Lock()
				learned = append(learned, len(hello.Keys))
				again := len(learned) > 1
				mu.Unlock()
				if len(hello.Keys) > 1 || !hello.More {
					wire.Send(c, &wire.Denied{})
					return
				}
				if again {
					wire.Send(c, &wire.Offer{})
				}
			}
		}
	})
	wantLearned := func(why string, want ...int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(learned, want) {
			t.Errorf("%s server gets Hellos of %v keys, want %v", why, learned, want)
		}
		learned = nil
	}
	wantError(t, connect(addr, 3, true), "permission denied")
	wantLearned("a known", 4)
	connect(addr, 3, false).Run()
	wantLearned("an unknown", 1, 1, 1, 1)

	h.Start()
	for n, accepted := range map[int]bool{2: true, 5: true, 6: false} {
		out, err := connect(h.Addr, n, false).Output()
		if got := err == nil && string(out) == "in\n"; got != accepted {
			t.Errorf("after %d other keys: %q, %v; want accepted: %v, as by sshd", n, out, err, accepted)
		}
	}
	wantOutput(t, connect(h.Addr, 8, true), "in\n")
}

// A private key that others may read is not used, and a warning says so, as loudly as ssh's.
func TestUnprotectedKey(t *testing.T) {
	h := newHost(t)
	h.Start()
	const warning = `qt: @@@ WARNING: UNPROTECTED PRIVATE KEY FILE @@@\nqt: permissions 0644 of .*/id are too open.*\n`
	if err := os.Chmod(h.Path("id"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := h.QT("connect", "true").CombinedOutput()
	if got := exitStatus(t, err); got != 255 || !regexp.MustCompile("^"+warning+"qt: no keys to prove").Match(out) {
		t.Errorf("status %d, %q; want 255 and the warning", got, out)
	}
	h.NewKey("second")
	h.Write("authorized_keys", h.Read("second.pub"))
	h.Identities = []string{"id", "second"}
	out, err = h.QT("connect", "echo in").CombinedOutput()
	if err != nil || !regexp.MustCompile("^"+warning+"in\n$").Match(out) {
		t.Errorf("with another key: %v, %q", err, out)
	}
}
