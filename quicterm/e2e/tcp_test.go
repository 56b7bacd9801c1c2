//go:build linux || darwin

package e2e

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A client logs in over TCP with its key, and comes back over TCP to the next daemon. Another one
// then comes back over QUIC.
func TestSessionOverTCP(t *testing.T) {
	h := newHost(t)
	h.Start()
	identity, err := auth.IdentityFile(h.Path("id"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := dialRawTCP(t, h)
	instance := newInstance()
	c.send(
		encode(t, &wire.Hello{User: accountName(t), Keys: [][]byte{h.Key.Marshal()}}),
		c.answer(identity, now()),
		encode(t, &wire.Attach{Instance: instance, Command: "cat > " + h.Path("typed")}),
	)
	var attached wire.Attached
	c.wantMessage(&attached)
	c.send(frame(1, wire.Stdin, "first,"))
	wantTyped(t, h, "first,")
	h.Stop(syscall.SIGKILL)
	h.Start()
	again := dialRawTCP(t, h)
	if _, err := again.resume(&attached, 1, instance).Write(frame(2, wire.Stdin, "second,")); err != nil {
		t.Error(err)
	}
	wantTyped(t, h, "first,second,")
	over := dialRaw(t, h)
	if _, err := over.resume(&attached, 2, instance).Write(frame(3, wire.Stdin, "third")); err != nil {
		t.Error(err)
	}
	wantTyped(t, h, "first,second,third")
}

// wantTyped waits until the program of a session has read exactly this.
func wantTyped(t *testing.T, h *rig.Host, want string) {
	t.Helper()
	var got []byte
	for start := time.Now(); time.Since(start) < rig.Patience; time.Sleep(5 * time.Millisecond) {
		if got, _ = os.ReadFile(h.Path("typed")); string(got) == want {
			return
		}
	}
	t.Fatalf("the program has read %q, want %q", got, want)
}
