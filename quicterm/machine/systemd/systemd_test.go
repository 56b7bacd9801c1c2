//go:build linux || darwin

package systemd

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// passedVar makes the test's executable print the sockets that it is passed.
const passedVar = "QUICTERM_TEST_PASSED"

func TestMain(m *testing.M) {
	if os.Getenv(passedVar) == "" {
		os.Exit(m.Run())
	}
	os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	if os.Getenv(passedVar) == "another" {
		os.Setenv("LISTEN_PID", "1")
	}
	_, sockets, err := Start()
	for _, s := range sockets {
		inherited := "kept"
		if flags, err := unix.FcntlInt(firstFD, unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			inherited = "inherited by children"
		}
		switch c := s.(type) {
		case *net.UDPConn:
			fmt.Println("udp", c.LocalAddr(), inherited)
		case *net.TCPListener:
			fmt.Println("tcp", c.Addr(), inherited)
		}
	}
	if err != nil {
		fmt.Println(err)
	}
}

// Only bound UDP sockets and TCP sockets that listen are taken over, only by the process that they
// are for, and no child inherits them.
func TestPassedSockets(t *testing.T) {
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	unixListener, err := net.Listen("unix", t.TempDir()+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer unixListener.Close()
	unused := func(typ int) *os.File {
		fd, err := unix.Socket(unix.AF_INET, typ, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "unused")
		t.Cleanup(func() { f.Close() })
		return f
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var files []*os.File
	for _, c := range []interface{ File() (*os.File, error) }{udp, tcp, unixListener.(*net.UnixListener)} {
		f, err := c.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	run := func(role string, n int) []string {
		t.Helper()
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = []string{passedVar + "=" + role, fmt.Sprintf("LISTEN_FDS=%d", n)}
		cmd.ExtraFiles = append(files, unused(unix.SOCK_DGRAM), unused(unix.SOCK_STREAM), null)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	lines := run("ours", 6)
	for i, want := range []string{
		"udp " + udp.LocalAddr().String() + " kept", "tcp " + tcp.Addr().String() + " kept",
		"descriptor 5 ", "descriptor 6 ", "descriptor 7 ", "descriptor 8 ",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d of %q, want %q", i, lines, want)
		}
	}
	if lines := run("another", 6); lines[0] != "" {
		t.Errorf("passed to another process: %q", lines)
	}
	if lines := run("ours", 1000); !strings.HasPrefix(lines[0], "LISTEN_FDS is") {
		t.Errorf("too many: %q", lines)
	}
}

// The manager hears from a process only while that passes its check.
func TestWatch(t *testing.T) {
	dir, err := os.MkdirTemp("", "qt") // short, for a socket's address
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: dir + "/notify", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", dir+"/notify")
	t.Setenv("WATCHDOG_USEC", "2000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	m, _, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	passed := make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Watch(ctx, func() { <-passed }) }()
	b := make([]byte, 100)
	for range 3 {
		socket.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if n, err := socket.Read(b); err == nil {
			t.Fatalf("heard %q before the check has returned", b[:n])
		}
		passed <- true
		socket.SetReadDeadline(time.Now().Add(20 * time.Second))
		if n, err := socket.Read(b); string(b[:n]) != "WATCHDOG=1" {
			t.Fatalf("heard %q, %v", b[:n], err)
		}
	}
	cancel()
	close(passed)
	if err := <-done; err != nil {
		t.Error(err)
	}

	t.Setenv("WATCHDOG_PID", "1")
	if m, _, err = Start(); err != nil || m.watchdog != 0 {
		t.Errorf("the watchdog of another process is %v, %v", m.watchdog, err)
	}
}
