package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// stranger is the user id of an account that is not root.
const stranger = 65534

// A daemon whose port another account has on one address does not start: the error names the process. It starts when
// the port is free.
func TestPortTakenByAnotherAccount(t *testing.T) {
	if err := rig.CanNamespace(); err != nil {
		t.Skip(err)
	}
	h := newHost(t)
	n := rig.NewNamespace(t)
	h.In = n
	h.Settings["listen"] = `[":4433"]`
	intruder := serveAsStranger(t, n, "127.0.0.1:4433")

	h.Write("taken.toml", fmt.Sprintf("listen = [\":4433\"]\nruntime_dir = %q\nstate_dir = %q\nhost_key = [%q]\n",
		h.Path("run"), h.Path("state"), h.Path("host_key")))
	out, err := n.In(exec.Command(filepath.Join(bin, "qtd"), "serve", "--config", h.Path("taken.toml"))).CombinedOutput()
	want := fmt.Sprintf(`address already in use; taken: udp 127\.0\.0\.1:4433, by process %d of user id %d: stop the process`,
		intruder.Process.Pid, stranger)
	if exitStatus(t, err) != 1 || !regexp.MustCompile(want).Match(out) {
		t.Errorf("status %v, and %s", err, out)
	}
	intruder.Process.Kill()
	intruder.Wait()
	h.Start()
	addr := netip.MustParseAddrPort("127.0.0.1:4433")
	h.Know(addr, h.Path("host_key.pub"))
	wantOutput(t, n.In(h.Via(addr, "connect", nil, "echo in")), "in\n")
}

// serveAsStranger starts a daemon of another account in a namespace.
func serveAsStranger(t *testing.T, n *rig.Namespace, listen string) *exec.Cmd {
	t.Helper()
	home, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	settings := fmt.Sprintf("runtime_dir = %q\nstate_dir = %q\n", home+"/run", home+"/state")
	if err := os.WriteFile(home+"/qtd.toml", []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	out := new(rig.Output)
	cmd := rig.Inside(n, func() (*exec.Cmd, error) {
		cmd := exec.Command(bin+"/qtd", "serve", "--config", home+"/qtd.toml", "--listen", listen)
		cmd.Dir, cmd.Env, cmd.Stderr = "/", []string{"HOME=" + home}, out
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		return cmd, cmd.Start()
	})
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	out.Await(t, 0, regexp.MustCompile("listening address="+regexp.QuoteMeta(listen)))
	return cmd
}

// The port is held while the daemon restarts, by the service manager: nobody can take it,
// and sessions go on.
func TestPortHeldOverRestart(t *testing.T) {
	h := newHost(t)
	h.Manage()
	h.Start()
	x := h.Shell(h.Addr)
	x.Run("echo be''fore", "before")

	network := h.Network()
	h.Stop(syscall.SIGKILL)
	if c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(h.Addr)); err == nil {
		t.Errorf("another process has got %v", c.LocalAddr())
		c.Close()
	}
	if l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(h.Addr)); err == nil {
		t.Errorf("another process has got %v for TCP", l.Addr())
		l.Close()
	}
	address := h.Addr
	h.Start()
	if got := h.Addr; got != address {
		t.Errorf("the next daemon listens at %v, the last one did at %v", got, address)
	}
	// Until it has noticed, the old network process accepts connections, too, and cannot sign.
	for until := time.Now().Add(rig.Patience); syscall.Kill(network, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the network process of a daemon that was killed does not end")
		}
	}
	dialRawTCP(t, h).conn.Close()
	x.Run("echo af''ter", "after")
}
