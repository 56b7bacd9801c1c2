//go:build linux || darwin

package holder

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// dialEnv is the environment variable that makes this executable ask the holder at a
// socket, and print the result.
const dialEnv = "QUICTERM_TEST_DIAL"

func dialAsChild(path string) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		fmt.Println("not connected:", err)
		return
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	c.Write([]byte{0})
	wire.Send(c, &wire.Open{})
	wire.Send(c, &wire.Query{})
	b, err := io.ReadAll(c)
	fmt.Printf("answered with %d bytes, %v\n", len(b), err)
}

// runAs runs this executable as another account.
func runAs(t *testing.T, uid uint32, env ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The other account cannot reach what go test has built.
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "test")
	// Not by this process: what another test forks could have the file open for writing.
	if out, err := exec.Command("cp", exe, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(file)
	cmd.Dir = "/"
	cmd.Env = append(env, "GORACE=atexit_sleep_ms=0") // with the race detector, a program lasts a second longer
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// A connection by another account than root or the session's is told nothing, even if it
// can reach the socket.
func TestForeignAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another account")
	}
	w := onSocket(t, wire.Launch{PTY: true})
	const nobody = 65534
	// The directory keeps others away. Here it does not.
	if err := os.Chmod(w.path, 0o666); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(w.path); len(dir) > len(filepath.Clean(os.TempDir())); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	good := w.attach("good@x")
	out := runAs(t, nobody, dialEnv+"="+w.path)
	if !strings.HasPrefix(out, "answered with 0 bytes, ") {
		t.Errorf("another account was %s", out)
	}
	w.awaitLog(1, "daemon refused", fmt.Sprintf("user id %d", nobody))
	good.ping()
	if out := runAs(t, 0, dialEnv+"="+w.path); strings.HasPrefix(out, "answered with 0 bytes, ") {
		t.Errorf("root was %s", out)
	}
}
