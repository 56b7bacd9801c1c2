package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A hungHome makes the daemon's processes find a file system at a directory that does not
// answer.
type hungHome struct {
	fs  *rig.HungFS
	dir string
}

func (h hungHome) In(cmd *exec.Cmd) *exec.Cmd { return h.fs.In(h.dir, cmd) }

// Logins to an account whose home does not answer cost the daemon one child and no thread
// each, and another account's logins go on.
func TestHungHome(t *testing.T) {
	if err := rig.CanHang(); err != nil {
		t.Skip(err)
	}
	const account, logins = "nobody", 60
	homes, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(homes)
	h := newHost(t)
	for _, dir := range []string{homes, filepath.Join(homes, account), filepath.Join(homes, accountName(t))} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(homes, accountName(t), "keys"), ssh.MarshalAuthorizedKey(h.Key), 0o600); err != nil {
		t.Fatal(err)
	}
	fs := rig.NewHungFS(t)
	h.In = hungHome{fs, filepath.Join(homes, account)}
	h.Settings["authorized_keys_files"] = fmt.Sprintf("[%q]", homes+"/%u/keys")
	h.Settings["max_unauthenticated"] = "1000"
	h.Start()
	wantOutput(t, h.QT("connect", "echo in"), "in\n")
	before := threads(t, h.Daemon.Process.Pid)

	var clients []*rawClient
	for range logins {
		c := dialRaw(t, h)
		c.send(encode(t, &wire.Hello{User: account, Keys: [][]byte{h.Key.Marshal()}}), encode(t, &wire.List{}))
		clients = append(clients, c)
	}
	for range 3 {
		wantOutput(t, h.QT("connect", "echo in"), "in\n")
		// The network process, the child that hangs, perhaps one that is being given up, and those of
		// the logins that have just ended, with the holders of their sessions.
		if n := len(h.Children()); n > logins/2 {
			t.Errorf("the daemon has %d children", n)
		}
		if now := threads(t, h.Daemon.Process.Pid); now > before+logins/2 {
			t.Errorf("the daemon has %d threads, and had %d before", now, before)
		}
	}
	fs.Answer()
	for _, c := range clients {
		c.wantEnd(encode(t, &wire.Denied{}))
	}
	wantOutput(t, h.QT("connect", "echo in"), "in\n")
}

// threads returns the number of threads of a process.
func threads(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(regexp.MustCompile(`(?m)^Threads:\t(\d+)$`).FindStringSubmatch(string(status))[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
