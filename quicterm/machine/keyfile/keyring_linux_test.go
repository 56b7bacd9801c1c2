package keyfile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const secretName = "quicterm-keyfile-test"

func init() {
	checkChild = func() error {
		if _, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", secretName, 0); err == nil {
			return errors.New("the child possesses a key of the daemon's session")
		}
		return nil
	}
}

// Neither the process that reads keys nor the program that prints them possesses keys of the session in which the daemon
// was started.
func TestKeyringOfReader(t *testing.T) {
	const inside = "KEYFILE_TEST_KEYRING"
	if os.Getenv(inside) == "" {
		runtime.LockOSThread() // the thread ends with the test
		if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil {
			t.Skip("no keyrings here: ", err)
		}
		if _, err := unix.AddKey("user", secretName, []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v") // all of its threads have the key
		cmd.Env = append(os.Environ(), inside+"=1")
		switch out, err := cmd.CombinedOutput(); {
		case err != nil:
			t.Errorf("%v\n%s", err, out)
		case strings.Contains(string(out), "--- SKIP"):
			t.Skipf("%s", out)
		}
		return
	}
	r, a := newReader(t), another(t)
	blob, line := key(1)
	if checkChild() == nil {
		t.Fatal("this process does not possess the key")
	}
	script := filepath.Join(programDir(t), "program")
	syscall.ForkLock.RLock() // no other test forks while the script can be written
	err := os.WriteFile(script, []byte("#!/bin/sh\nif grep -q "+secretName+" /proc/keys; then exit 1; fi; echo \"$1\"\n"), 0o755)
	syscall.ForkLock.RUnlock()
	if err = errors.Join(err, os.Chmod(script, 0o755)); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	for what, sources := range map[string]*Sources{
		"files":   {Files: []string{put(t, a, "keys", 0o600, line)}},
		"program": {Program: &Program{Argv: []string{script, strings.TrimSpace(line)}, Account: a}},
	} {
		if got := verdicts(r.Authorize(t.Context(), a, sources, ask(clientAddr, blob)...)); got != "allowed" {
			t.Errorf("%s: %s", what, got)
		}
	}
}
