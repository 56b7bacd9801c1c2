//go:build linux || darwin

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// echoes starts a server of a test, which sends back what it gets, with a word in front of it, and then its end.
func echoes(t *testing.T, network, address, word string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.WriteString(c, word)
				io.Copy(c, c)
			}()
		}
	}()
	return l
}

// deadPort returns a port of this machine at which nobody listens, and that no other program can have meanwhile.
func deadPort(t *testing.T) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return at.(*syscall.SockaddrInet4).Port
}

// forwarding runs a client that forwards, and returns what it says.
func forwarding(t *testing.T, cmd *exec.Cmd) *rig.Output {
	t.Helper()
	out := new(rig.Output)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Logf("%v says:\n%s", cmd.Args, out.String())
		}
	})
	return out
}

// reach connects to an address as soon as something listens there.
func reach(t *testing.T, network, address string) net.Conn {
	t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial(network, address)
		if err == nil {
			t.Cleanup(func() { c.Close() })
			return c
		}
		if time.Since(start) > rig.Patience {
			t.Fatal(err)
		}
	}
}

// wantAnswer sends a text by a connection, and its end, and checks what comes back.
func wantAnswer(t *testing.T, why string, c net.Conn, text, want string) {
	t.Helper()
	c.SetDeadline(time.Now().Add(rig.Patience))
	io.WriteString(c, text)
	c.(interface{ CloseWrite() error }).CloseWrite()
	if got, err := io.ReadAll(c); string(got) != want {
		t.Errorf("%s: %q, %v; want %q", why, got, err, want)
	}
}

// socks asks for a connection by SOCKS 5, to a name.
func socks(t *testing.T, c net.Conn, host string, port int) (reply byte) {
	t.Helper()
	c.SetDeadline(time.Now().Add(rig.Patience))
	c.Write(append(append([]byte{5, 2, 2, 0, 5, 1, 0, 3, byte(len(host))}, host...), byte(port>>8), byte(port)))
	answer := make([]byte, 2+10)
	if _, err := io.ReadFull(c, answer); err != nil {
		t.Fatal(err)
	}
	return answer[3]
}

// Ports and unix sockets are forwarded both ways, without a session, and one line says what does not work.
func TestForward(t *testing.T) {
	h := newHost(t)
	h.Start()
	echo := echoes(t, "tcp", "127.0.0.1:0", "port:").Addr().(*net.TCPAddr).Port
	echoes(t, "unix", h.Path("target"), "socket:")
	other := echoes(t, "tcp", "127.0.0.1:0", "")
	taken := other.Addr().(*net.TCPAddr).Port
	local, toSocket, toNobody, dynamic, dead := freePort(t), freePort(t), freePort(t), freePort(t), deadPort(t)
	out := forwarding(t, h.Via(h.Addr, "forward", []string{
		"-L", fmt.Sprintf("%d:localhost:%d", local, echo),
		"-L", fmt.Sprintf("127.0.0.1:%d:%s", toSocket, h.Path("target")),
		"-L", fmt.Sprintf("%s:[127.0.0.1]:%d", h.Path("near"), echo),
		"-L", fmt.Sprintf("%d:127.0.0.1:%d", toNobody, dead),
		"-L", fmt.Sprintf("%d:127.0.0.1:1", taken),
		"-D", fmt.Sprint(dynamic),
		"-R", fmt.Sprintf("0:127.0.0.1:%d", echo),
		"-R", fmt.Sprintf("%s:%s", h.Path("far"), h.Path("target")),
		"-R", fmt.Sprintf("%d:127.0.0.1:%d", taken, echo),
		"-R", "127.0.0.1:0",
	}))
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	wantAnswer(t, "-L", reach(t, "tcp", at(local)), "one", "port:one")
	wantAnswer(t, "-L by IPv6", reach(t, "tcp", fmt.Sprintf("[::1]:%d", local)), "one", "port:one")
	wantAnswer(t, "-L to a socket", reach(t, "tcp", at(toSocket)), "two", "socket:two")
	wantAnswer(t, "-L from a socket", reach(t, "unix", h.Path("near")), "three", "port:three")
	c := reach(t, "tcp", at(dynamic))
	if reply := socks(t, c, "localhost", echo); reply != 0 {
		t.Errorf("SOCKS replies %d", reply)
	}
	wantAnswer(t, "-D", c, "four", "port:four")
	if reply := socks(t, reach(t, "tcp", at(dynamic)), "127.0.0.1", dead); reply == 0 {
		t.Error("SOCKS connects to a port where nobody listens")
	}
	far := out.Await(t, 0, regexp.MustCompile(`-R localhost:0: the server listens at port (\d+)`))[1]
	wantAnswer(t, "-R", reach(t, "tcp", "127.0.0.1:"+far), "five", "port:five")
	wantAnswer(t, "-R from a socket", reach(t, "unix", h.Path("far")), "six", "socket:six")
	far = out.Await(t, 0, regexp.MustCompile(`-R 127.0.0.1:0: the server listens at port (\d+)`))[1]
	c = reach(t, "tcp", "127.0.0.1:"+far)
	if reply := socks(t, c, "localhost", echo); reply != 0 {
		t.Errorf("SOCKS from the server replies %d", reply)
	}
	wantAnswer(t, "-R by SOCKS", c, "seven", "port:seven")
	if reply := socks(t, reach(t, "tcp", "127.0.0.1:"+far), "\x1b7title", echo); reply == 0 {
		t.Error("SOCKS from the server connects to no name")
	}
	out.Await(t, 0, regexp.MustCompile(`-R 127.0.0.1:0: \?7title:\d+: `))

	wantAnswer(t, "-L to nobody", reach(t, "tcp", at(toNobody)), "", "")
	for _, line := range []string{
		fmt.Sprintf(`qt: -L localhost:%d: 127.0.0.1:%d: connection refused\n`, toNobody, dead),
		fmt.Sprintf(`qt: -L localhost:%d: address already in use\n`, taken),
		fmt.Sprintf(`qt: -R localhost:%d: address already in use\n`, taken),
	} {
		out.Await(t, 0, regexp.MustCompile(line))
	}
	other.Close() // then the server listens there
	wantAnswer(t, "-R when the port is free", reach(t, "tcp", at(taken)), "eight", "port:eight")
	awaitList(t, h, "^ID.*\n$") // a side pipe is no session
	if info, err := os.Stat(h.Path("far")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket of -R: %v, %v", info, err)
	}
}

// A connection continues with every byte after a new address, an outage and a restart of the daemon, and others can be
// opened.
func TestForwardOutage(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	echo := echoes(t, "tcp", "127.0.0.1:0", "").Addr().(*net.TCPAddr).Port
	local := freePort(t)
	out := forwarding(t, h.Via(p.Addr(), "forward", []string{
		"-L", fmt.Sprintf("%d:127.0.0.1:%d", local, echo), "-R", fmt.Sprintf("0:127.0.0.1:%d", echo),
	}))
	far := out.Await(t, 0, regexp.MustCompile(`the server listens at port (\d+)`))[1]
	in := random(8 << 20)
	got := new(rig.Output)
	c := reach(t, "tcp", fmt.Sprintf("127.0.0.1:%d", local))
	idle := reach(t, "tcp", fmt.Sprintf("127.0.0.1:%d", local))
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(got, c)
		read <- err
	}()
	quarter := len(in) / 4
	anything := regexp.MustCompile("(?s).")
	for i := range 4 {
		switch i {
		case 1:
			p.Rebind()
		case 2:
			p.Set(netem.Config{Down: true})
		case 3:
			h.Stop(syscall.SIGKILL)
			h.Start()
			p.Set(netem.Config{})
		}
		if _, err := c.Write(in[i*quarter : (i+1)*quarter]); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			got.Await(t, i*quarter, anything) // so that the events are spread over the stream
		}
	}
	c.(*net.TCPConn).CloseWrite()
	if err := <-read; err != nil || !bytes.Equal([]byte(got.String()), in) {
		t.Errorf("%d bytes came back, not the %d that were sent: %v", got.Len(), len(in), err)
	}
	wantAnswer(t, "one that was idle", idle, "one", "one")
	wantAnswer(t, "another one", reach(t, "tcp", fmt.Sprintf("127.0.0.1:%d", local)), "two", "two")
	wantAnswer(t, "-R", reach(t, "tcp", "127.0.0.1:"+far), "three", "three")
}

// Connections that are closed leave nothing, whichever end closes them, and a slow one holds up no other one.
func TestForwardMany(t *testing.T) {
	h := newHost(t)
	h.Start()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody reads what it gets
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	echo := echoes(t, "tcp", "127.0.0.1:0", "").Addr().(*net.TCPAddr).Port
	local, slow := freePort(t), freePort(t)
	forwarding(t, h.Via(h.Addr, "forward", []string{
		"-L", fmt.Sprintf("%d:127.0.0.1:%d", local, echo), "-L", fmt.Sprintf("%d:%v", slow, silent.Addr()),
	}))
	stuck := reach(t, "tcp", fmt.Sprintf("127.0.0.1:%d", slow))
	stuck.SetWriteDeadline(time.Now().Add(time.Second))
	if n, err := io.Copy(stuck, bytes.NewReader(random(64<<20))); err == nil {
		t.Errorf("%d bytes went to a program that reads nothing", n)
	}
	for i := range 200 {
		c := reach(t, "tcp", fmt.Sprintf("127.0.0.1:%d", local))
		if i%2 == 0 {
			wantAnswer(t, "beside a slow one", c, "one", "one")
		}
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	wantAnswer(t, "after many", reach(t, "tcp", fmt.Sprintf("127.0.0.1:%d", local)), "two", "two")
}
