package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// stranger is the user id of an account that is not root.
const stranger = 65534

// An account that takes the usual port on the loopback interface does not keep root's
// daemon from serving all other addresses. The log names it, and the daemon takes the
// address when it can.
func TestPortTakenByAnotherAccount(t *testing.T) {
	if err := rig.CanNamespace(); err != nil {
		t.Skip(err)
	}
	h := newHost(t)
	n := rig.NewNamespace(t)
	n.IP("addr", "add", "192.0.2.1/32", "dev", "lo")
	h.In = n
	h.Settings["listen"] = `[":4433"]`
	intruder := serveAsStranger(t, n, "127.0.0.1:4433")

	h.Start()
	for _, protocol := range []string{"udp", "tcp"} {
		log := fmt.Sprintf(`another process has a port of this daemon.* protocol=%s address=127\.0\.0\.1:4433 uid=%d pid=%d`,
			protocol, stranger, intruder.Process.Pid)
		h.Log.Await(t, 0, regexp.MustCompile(log))
	}
	reach := func(address string) {
		t.Helper()
		addr := netip.MustParseAddrPort(address)
		h.Know(addr, h.Path("host_key.pub"))
		wantOutput(t, n.In(h.Via(addr, "connect", nil, "echo in")), "in\n")
		rig.Inside(n, func() (net.Conn, error) { return net.Dial("tcp", address) }).Close()
	}
	reach("192.0.2.1:4433")
	reach("[::1]:4433")

	n.IP("addr", "add", "192.0.2.2/32", "dev", "lo") // addresses come and go
	h.Log.Await(t, 0, regexp.MustCompile(`listening address=192\.0\.2\.2:4433 protocol=udp`))
	h.Log.Await(t, 0, regexp.MustCompile(`listening address=192\.0\.2\.2:4433 protocol=tcp`))
	intruder.Process.Kill()
	intruder.Wait()
	h.Log.Await(t, 0, regexp.MustCompile(`listening address=127\.0\.0\.1:4433 protocol=udp`))
	h.Log.Await(t, 0, regexp.MustCompile(`listening address=127\.0\.0\.1:4433 protocol=tcp`))
	reach("127.0.0.1:4433")
	if got := strings.Count(h.Log.String(), "another process has a port"); got != 2 {
		t.Errorf("%d lines about two sockets of one other process", got)
	}
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
	dialRawTCP(t, h).conn.Close()
	x.Run("echo af''ter", "after")
}
