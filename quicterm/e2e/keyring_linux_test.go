package e2e

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/machine/keyring"
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
		administrators, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
		if err != nil {
			t.Skip("no keyrings here: ", err)
		}
		if _, err := unix.AddKey("user", "of-the-administrator", []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
			t.Fatal(err)
		}
		h.Start()
		runtime.UnlockOSThread()
		h.KnowName("127.0.0.1", h.Addr.Port(), h.Path("host_key.pub"))
		before := usesOf(t, administrators)
		cmd := h.To("127.0.0.1", h.Addr.Port(), "connect", []string{"-l", "ann"}, "cat /proc/keys; echo all; cat")
		input, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		output, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := keyring.Start(cmd); err != nil { // else the client has that keyring
			t.Fatal(err)
		}
		var out strings.Builder
		for lines := bufio.NewScanner(output); lines.Scan() && lines.Text() != "all"; {
			out.WriteString(lines.Text() + "\n")
		}
		// None of its processes has the keyring of the administrator: not its holder, and not su.
		for start := time.Now(); usesOf(t, administrators) > before; time.Sleep(time.Millisecond) {
			if time.Since(start) > rig.Patience {
				t.Fatalf("login %s: the administrator's keyring has %d users, %d before the session", login, usesOf(t, administrators), before)
			}
		}
		input.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		// It sees the keyrings that it possesses, and those of its account.
		var owners []string
		for line := range strings.Lines(out.String()) {
			if f := strings.Fields(line); len(f) > 8 && f[8] == "_ses:" {
				owners = append(owners, f[5])
			}
		}
		foreign := slices.ContainsFunc(owners, func(uid string) bool { return uid != "77001" })
		if strings.Contains(out.String(), "of-the-administrator") || len(owners) == 0 || foreign || !strings.Contains(out.String(), "_uid.77001") {
			t.Errorf("login %s: a session sees the keys\n%s", login, &out)
		}
		h.Stop(syscall.SIGTERM)
	}
}

// usesOf returns how many credentials of processes have a keyring, as the kernel counts them.
func usesOf(t *testing.T, of int) int {
	t.Helper()
	keys, err := os.ReadFile("/proc/keys")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(keys)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == fmt.Sprintf("%08x", of) {
			uses, err := strconv.Atoi(f[2])
			if err != nil {
				t.Fatal(err)
			}
			return uses
		}
	}
	t.Fatalf("keyring %08x is not among\n%s", of, keys)
	return 0
}
