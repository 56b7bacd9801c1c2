//go:build linux || darwin

package holdertest

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/quicterm/quicterm/quicterm/machine/account"
)

// QuickExit is the environment in which a program with the race detector ends at once, not a second later.
const QuickExit = "GORACE=atexit_sleep_ms=0"

// copiedVar is set in a process that runs a copy of the test's executable.
const copiedVar = "QUICTERM_TEST_COPIED"

// InCopy runs the test in a process that runs a copy of this executable, and reports whether this is that process.
// Other accounts can execute the copy, which they cannot with what go test has built.
func InCopy(t *testing.T) bool {
	t.Helper()
	if os.Getenv(copiedVar) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("only root starts processes as another account")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(ReachableDir(t), "test")
	// Not by this process: what another test forks could have the file open for writing.
	if out, err := exec.Command("cp", exe, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), copiedVar+"=1", QuickExit)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// ReachableDir returns a directory that other accounts can enter, with room for the name of a socket.
func ReachableDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "qt")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Nobody returns an account that is not root.
func Nobody(t testing.TB) *account.Account {
	t.Helper()
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	id := func(s string) uint32 {
		n, err := strconv.ParseInt(s, 10, 64) // on macOS it is -2
		if err != nil {
			t.Fatal(err)
		}
		return uint32(n)
	}
	return &account.Account{Name: "nobody", UID: id(u.Uid), GID: id(u.Gid), Home: "/", Shell: "/bin/sh"}
}
