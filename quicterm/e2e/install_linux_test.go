package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/rig"
)

// ownTemporary gives this process a /tmp and a /run of its own: accounts have their daemons' sockets there, and
// another test process has accounts with the same numbers. Their sessions end with the test.
func ownTemporary(t *testing.T) {
	t.Helper()
	for _, m := range []struct {
		source, target, kind, options string
		flags                         uintptr
	}{
		{"", "/", "", "", unix.MS_REC | unix.MS_PRIVATE},
		{bin, "/mnt", "", "", unix.MS_BIND},
		{"tmpfs", "/tmp", "tmpfs", "mode=1777", 0},
		{"tmpfs", "/run", "tmpfs", "mode=755", 0},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.options); err != nil {
			t.Fatal(err)
		}
	}
	bin = "/mnt"
	t.Cleanup(func() {
		for _, sockets := range []string{"/tmp/quicterm-*/*.sock", "/run/quicterm/*/*.sock"} {
			if err := rig.EndSessions(sockets); err != nil {
				t.Error(err)
			}
		}
	})
}

// A newcomer's first qt connect, to a host with sshd and nothing else: qt names the command that copies
// qtd, and then opens a session. Then plain ssh goes through qt.
func TestFirstConnect(t *testing.T) {
	skipUnderRace(t)
	if !inside(t) {
		return
	}
	ownTemporary(t)
	h := newHost(t)
	machine(t, h)
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	plain, err := user.Lookup("plain")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("chown", "plain:", plain.HomeDir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	runtime := "/tmp/quicterm-" + plain.Uid
	t.Cleanup(func() {
		lock, _ := os.ReadFile(filepath.Join(runtime, "qtd.lock"))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(lock))); err == nil {
			syscall.Kill(pid, syscall.SIGTERM)
		}
	})
	key, err := os.ReadFile("/etc/ssh/host_key.pub")
	if err != nil {
		t.Fatal(err)
	}
	h.Write("known", "127.0.0.1 "+string(key))
	h.Write("ssh_config", fmt.Sprintf("Host server\n HostName 127.0.0.1\n User plain\n IdentityFile %s\n UserKnownHostsFile %s\n", h.Path("id"), h.Path("known")))
	qt := func(subcommand string, flags ...string) *exec.Cmd {
		all := append([]string{subcommand, "-F", h.Path("ssh_config")}, flags...)
		cmd := exec.Command(filepath.Join(bin, "qt"), append(all, "server")...)
		cmd.Env = append(h.Env(), "XDG_STATE_HOME="+h.Path("client-state"))
		return cmd
	}
	const missing = "qtd is not installed on server"
	alone := qt("connect")
	alone.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	wantError(t, alone, missing+": qt install server puts it there")

	if out, err := qt("install").CombinedOutput(); err != nil || !strings.Contains(string(out), " on server is installed: /home/plain/.local/bin/qtd") {
		t.Fatalf("%v, %s", err, out)
	}
	x := rig.Open(t, qt("connect"))
	x.Expect(`\$ `)
	x.Run("echo $USER", "plain")
	x.Send("exit\r")
	if got := x.Exit(); got != 0 {
		t.Errorf("exit status %d, want 0", got)
	}

	block, err := qt("ssh-config").Output()
	if err != nil {
		t.Fatal(err)
	}
	h.Write("ssh_config_qt", string(block))
	through := exec.Command("ssh", "-F", h.Path("ssh_config_qt"), "server.qt", "echo through qt")
	through.Env = qt("").Env
	wantOutput(t, through, "through qt\n")
}
