//go:build !android

package tcp

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// namespaceEnv is set in a test process that has a network namespace of its own.
const namespaceEnv = "TCP_TEST_NAMESPACE"

// inNamespace runs the test in a process with its own network namespace, and reports whether this
// is that process.
func inNamespace(t *testing.T) bool {
	if os.Getenv(namespaceEnv) != "" {
		return true
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skipf("network namespaces need the command ip (Debian package iproute2): %v", err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), namespaceEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch exit := (*exec.ExitError)(nil); {
	case errors.As(err, &exit):
		t.Errorf("in a network namespace: %v\n%s", err, out)
	case err != nil:
		t.Skipf("network namespaces are not permitted: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	default:
		t.Logf("%s", out)
	}
	return false
}

// A peerHost is another host: a network namespace, at the other end of a link.
type peerHost struct {
	calls chan func() // run in the namespace
}

// newPeerHost makes a host, with an address for each end of the link.
func newPeerHost(t *testing.T) *peerHost {
	h := &peerHost{make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // which ends with this goroutine: its namespace is another
		ready <- unix.Unshare(unix.CLONE_NEWNET)
		for f := range h.calls {
			f()
		}
	}()
	t.Cleanup(func() { close(h.calls) })
	if err := <-ready; err != nil {
		t.Skipf("network namespaces are not permitted: %v", err)
	}
	var tid int
	h.do(func() { tid = unix.Gettid() })
	if out, err := exec.Command("ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", strconv.Itoa(tid)).CombinedOutput(); err != nil {
		t.Skipf("the kernel has no veth devices: %v: %s", err, out)
	}
	ip(t, "addr add 192.0.2.1/24 dev near", "link set near up")
	h.do(func() { ip(t, "addr add 192.0.2.2/24 dev far", "link set far up") })
	return h
}

func (h *peerHost) do(f func()) {
	done := make(chan struct{})
	h.calls <- func() { defer close(done); f() }
	<-done
}

// ip runs commands of ip(8).
func ip(t *testing.T, commands ...string) {
	for _, c := range commands {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			t.Errorf("ip %s: %v: %s", c, err, out)
		}
	}
}

// A connection whose peer cannot be reached ends after the time that was set, whether something is
// under way or not. A peer that says nothing is no reason.
func TestEndIfSilent(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	const d = 2 * time.Second
	peer := newPeerHost(t)
	var l net.Listener
	var err error
	peer.do(func() { l, err = net.Listen("tcp", "192.0.2.2:0") })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	clientTLS, serverTLS := testTLS(t)
	connect := func() *Conn {
		go func() {
			if c, err := l.Accept(); err == nil {
				conn := Server(c, serverTLS)
				conn.Handshake(t.Context())
				t.Cleanup(func() { conn.Close() })
			}
		}()
		c, err := Dial(t.Context(), direct, addrPort(l.Addr()), clientTLS)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	read := func(c *Conn) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}()
		return ended
	}
	writing, idle, free := connect(), connect(), connect()
	for _, c := range []*Conn{writing, idle, free} {
		c.EndIfSilent(d)
	}
	free.EndIfSilent(0)
	ends := map[string]<-chan error{"under way": read(writing), "idle": read(idle)}
	freed := read(free)
	time.Sleep(2 * d)
	peer.do(func() { ip(t, "addr flush dev far") })
	down := time.Now()
	writing.Write([]byte("x"))
	for name, ended := range ends {
		select {
		case err := <-ended:
			t.Logf("%s: %v after %v", name, err, time.Since(down).Round(time.Millisecond))
			if time.Since(down) < d/4 {
				t.Errorf("%s: a peer that was silent counts as gone", name)
			}
		case <-time.After(patience):
			t.Errorf("%s: the connection does not end", name)
		}
	}
	select {
	case err := <-freed:
		t.Errorf("a connection for which that was ended: %v", err)
	case <-time.After(d):
	}
}
