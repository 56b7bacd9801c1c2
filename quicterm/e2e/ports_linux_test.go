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
	"time"

	"golang.org/x/sys/unix"

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
	log := fmt.Sprintf(`another process has a port of this daemon.* address=127\.0\.0\.1:4433 uid=%d pid=%d`, stranger, intruder.Process.Pid)
	h.Log.Await(t, 0, regexp.MustCompile(log))
	reach := func(address string) {
		t.Helper()
		addr := netip.MustParseAddrPort(address)
		h.Know(addr, h.Path("host_key.pub"))
		wantOutput(t, n.In(h.Via(addr, "connect", nil, "echo in")), "in\n")
	}
	reach("192.0.2.1:4433")
	reach("[::1]:4433")

	n.IP("addr", "add", "192.0.2.2/32", "dev", "lo") // addresses come and go
	h.Log.Await(t, 0, regexp.MustCompile(`listening address=192\.0\.2\.2:4433`))
	intruder.Process.Kill()
	intruder.Wait()
	h.Log.Await(t, 0, regexp.MustCompile(`listening address=127\.0\.0\.1:4433`))
	reach("127.0.0.1:4433")
	if got := strings.Count(h.Log.String(), "another process has a port"); got != 1 {
		t.Errorf("%d lines about one other process", got)
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
	m := newManager(t, h)
	h.In = m
	h.Start()
	m.socket.SetReadDeadline(time.Now().Add(rig.Patience))
	m.await("READY=1")
	m.await("FDSTORE=1")
	x := h.Shell(h.Addr)
	x.Run("echo be''fore", "before")

	h.Stop(syscall.SIGKILL)
	if c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(h.Addr)); err == nil {
		t.Errorf("another process has got %v", c.LocalAddr())
		c.Close()
	}
	h.Start()
	if got := h.Addr; got != m.address {
		t.Errorf("the next daemon listens at %v, the last one did at %v", got, m.address)
	}
	x.Run("echo af''ter", "after")
}

// A manager stands in for systemd: it keeps sockets, and passes them to the next daemon.
type manager struct {
	t       *testing.T
	host    *rig.Host
	socket  *net.UnixConn
	path    string
	states  map[string]bool // that the daemon has told
	name    string          // of the socket that it keeps
	kept    *os.File
	address netip.AddrPort
}

func newManager(t *testing.T, h *rig.Host) *manager {
	m := &manager{t: t, host: h, path: h.Path("notify"), states: make(map[string]bool)}
	var err error
	if m.socket, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.socket.Close()
		m.kept.Close()
	})
	return m
}

// In implements [rig.Host.In]. LISTEN_PID must be the process id of the daemon, which the
// shell becomes.
func (m *manager) In(cmd *exec.Cmd) *exec.Cmd {
	args := append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`}, cmd.Args...)
	cmd = exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+m.path)
	if m.kept != nil {
		cmd.Env = append(cmd.Env, "LISTEN_FDS=1", "LISTEN_FDNAMES="+m.name)
		cmd.ExtraFiles = []*os.File{m.kept}
	}
	return cmd
}

// await receives what the daemon tells, until it has told a state.
func (m *manager) await(state string) {
	m.t.Helper()
	for !m.states[state] {
		b, oob := make([]byte, 4096), make([]byte, 128)
		n, oobn, _, _, err := m.socket.ReadMsgUnix(b, oob)
		if err != nil {
			m.t.Fatal(err)
		}
		for line := range strings.Lines(string(b[:n])) {
			line = strings.TrimSpace(line)
			m.states[line] = true
			if name, ok := strings.CutPrefix(line, "FDNAME="); ok {
				m.name = name
			}
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			m.t.Fatal(err)
		}
		for _, message := range messages {
			fds, err := unix.ParseUnixRights(&message)
			if err != nil || len(fds) != 1 {
				m.t.Fatalf("%d descriptors, %v; want 1", len(fds), err)
			}
			m.kept, m.address = os.NewFile(uintptr(fds[0]), "kept"), m.host.Addr
		}
	}
}
