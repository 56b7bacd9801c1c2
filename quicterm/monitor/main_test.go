//go:build linux || darwin

package monitor

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// grantVar makes the test's executable ask for a grant at a socket.
const grantVar = "QUICTERM_TEST_GRANT"

// quickExit is the environment in which a program with the race detector ends at once, not a
// second later.
const quickExit = "GORACE=atexit_sleep_ms=0"

// TestMain makes the test's executable a holder or a reader of keys if a daemon starts it
// as one.
func TestMain(m *testing.M) {
	if path := os.Getenv(grantVar); path != "" {
		askForGrant(path)
		os.Exit(0)
	}
	holdertest.Child()
	os.Exit(m.Run())
}

// copiedVar is set in a process that runs a copy of the test's executable.
const copiedVar = "QUICTERM_TEST_COPIED"

// inCopy runs the test in a process that runs a copy of this executable, and reports
// whether this is that process. Other accounts can execute the copy, which they cannot
// with what go test has built.
func inCopy(t *testing.T) bool {
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
	file := filepath.Join(reachableDir(t), "test")
	// Not by this process: what another test forks could have the file open for writing.
	if out, err := exec.Command("cp", exe, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), copiedVar+"=1", quickExit)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// reachableDir returns a directory that other accounts can enter, with room for the name
// of a socket.
func reachableDir(t *testing.T) string {
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

func askForGrant(path string) {
	c, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println(err)
		return
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	wire.Send(c, &wire.Ask{}) // a daemon that has closed the connection has answered already
	m, err := wire.Read(c, wire.MaxMessage)
	if err != nil {
		fmt.Println(err)
		return
	}
	failed := new(wire.Error)
	if m.Decode(failed) == nil {
		fmt.Println("refused:", failed.Text)
		return
	}
	fmt.Println("granted")
}
