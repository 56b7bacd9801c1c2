//go:build linux || darwin

package e2e

import (
	"os"
	"regexp"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
)

// A client whose key was removed cannot come back, and is told why; its session continues,
// for whoever may log in. A file of keys that cannot be read takes nothing from it.
func TestKeyRemoved(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "mine")
	restart := func() {
		h.Stop(syscall.SIGKILL)
		h.Start()
		x.Send("\r") // the client notices sooner
	}

	if err := os.Chmod(h.Path("authorized_keys"), 0o666); err != nil {
		t.Fatal(err)
	}
	from := h.Log.Len()
	restart()
	h.Log.Await(t, from, regexp.MustCompile("cannot check a client's access.*others may write to it"))
	x.Run("echo un''touched", "untouched")

	if err := os.Chmod(h.Path("authorized_keys"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := h.NewKey("other")
	h.Write("authorized_keys", string(ssh.MarshalAuthorizedKey(other)))
	restart()
	x.Expect("qt: access was withdrawn: " + regexp.QuoteMeta(ssh.FingerprintSHA256(h.Key)) + ": key is not in authorized_keys: the session continues")
	if got := x.Exit(); got != 255 {
		t.Errorf("exit status %d, want 255", got)
	}
	wantError(t, h.QT("ls"), "permission denied")

	h.Write("authorized_keys", string(ssh.MarshalAuthorizedKey(h.Key)))
	y := rig.Open(t, h.QT("attach", "mine"))
	y.Run("echo still''here", "stillhere")
	y.Send("exit\r")
	y.Exit()
}

// A key that is still in the file, and no longer good from this address or at this time, lets
// its client come back no more than a removed one.
func TestKeyRestricted(t *testing.T) {
	h := newHost(t)
	h.Start()
	key := string(ssh.MarshalAuthorizedKey(h.Key))
	for option, why := range map[string]string{
		`from="192.0.2.0/24"`:               "does not allow 127.0.0.1",
		`expiry-time="20200101"`:            "has passed",
		`command="echo forced"`:             "is allowed less than before",
		`from="127.0.0.1",agent-forwarding`: "",
	} {
		h.Write("authorized_keys", key)
		x := h.Shell(h.Addr)
		from := h.Log.Len()
		h.Write("authorized_keys", option+" "+key)
		h.Stop(syscall.SIGKILL)
		h.Start()
		x.Send("echo still''here\r")
		if why == "" {
			x.Expect("stillhere")
			continue
		}
		x.Expect("qt: access was withdrawn: .*" + why)
		if got := x.Exit(); got != 255 {
			t.Errorf("%s: exit status %d, want 255", option, got)
		}
		h.Log.Await(t, from, regexp.MustCompile("client refused.*resume.*"+why))
	}
}

// qt revoke takes access from clients that have logged in with a key, at once, and from
// commands without a terminal. Clients that other keys let in keep it.
func TestRevoke(t *testing.T) {
	h := newHost(t)
	second := h.NewKey("second")
	h.Write("authorized_keys", string(ssh.MarshalAuthorizedKey(h.Key))+string(ssh.MarshalAuthorizedKey(second)))
	h.Start()
	x := h.Shell(h.Addr, "-s", "first")
	y := h.Shell(h.Addr, "-s", "second", "-i", h.Path("second"))
	revoke := func(key, want string) {
		t.Helper()
		out, err := h.Via(h.Addr, "revoke", []string{key}).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("qt revoke %s: %v, %q; want %q", key, err, out, want)
		}
	}
	revoke(h.Path("second.pub"), "qt: 1 client has lost access\n")
	y.Expect("qt: access was withdrawn: .*@127.0.0.1 has revoked it")
	if got := y.Exit(); got != 255 {
		t.Errorf("exit status %d, want 255", got)
	}
	x.Run("echo not''mine", "notmine")
	revoke(ssh.FingerprintSHA256(second), "qt: 0 clients have lost access\n")

	pipe := h.QT("connect", "echo began; exec sleep 1000")
	var out rig.Output
	pipe.Stdout = &out
	if err := pipe.Start(); err != nil {
		t.Fatal(err)
	}
	out.Await(t, 0, regexp.MustCompile("began"))
	revoke("all", "qt: 2 clients have lost access\n")
	x.Expect("qt: access was withdrawn: .*@127.0.0.1 has revoked it")
	x.Exit()
	if pipe.Wait(); pipe.ProcessState.ExitCode() != 255 {
		t.Errorf("the pipe: %v", pipe.ProcessState)
	}

	h.Write("authorized_keys", `command="echo forced",restrict `+string(ssh.MarshalAuthorizedKey(h.Key)))
	wantError(t, h.Via(h.Addr, "revoke", []string{"all"}), "may revoke nothing")
}
