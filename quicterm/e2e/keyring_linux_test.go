package e2e

import (
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A session has a keyring that belongs to its account: it possesses no key of the login in which the daemon was started.
func TestSessionKeyring(t *testing.T) {
	if !insideWith(t, "ip") {
		return
	}
	h := pamHost(t)
	for _, login := range []string{"pam", "direct"} {
		if login == "direct" {
			withoutSu(t)
		}
		runtime.LockOSThread()
		if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil {
			t.Skip("no keyrings here: ", err)
		}
		if _, err := unix.AddKey("user", "of-the-administrator", []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
			t.Fatal(err)
		}
		h.Start()
		runtime.UnlockOSThread()
		h.KnowName("127.0.0.1", h.Addr.Port(), h.Path("host_key.pub"))
		out, err := h.To("127.0.0.1", h.Addr.Port(), "connect", []string{"-l", "ann"}, "cat /proc/keys").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		// It sees the keyrings that it possesses, and those of its account.
		var owners []string
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) > 8 && f[8] == "_ses:" {
				owners = append(owners, f[5])
			}
		}
		foreign := slices.ContainsFunc(owners, func(uid string) bool { return uid != "77001" })
		if strings.Contains(string(out), "of-the-administrator") || len(owners) == 0 || foreign || !strings.Contains(string(out), "_uid.77001") {
			t.Errorf("login %s: a session sees the keys\n%s", login, out)
		}
		h.Stop(syscall.SIGTERM)
	}
}
