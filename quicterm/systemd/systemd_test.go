//go:build linux || darwin

package systemd

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

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
		switch c := s.Conn.(type) {
		case *net.UDPConn:
			fmt.Println(s.Name, "udp", c.LocalAddr(), inherited)
		case *net.TCPListener:
			fmt.Println(s.Name, "tcp", c.Addr(), inherited)
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
		cmd.Env = []string{passedVar + "=" + role, fmt.Sprintf("LISTEN_FDS=%d", n), "LISTEN_FDNAMES=a:b:c:d:e:f"}
		cmd.ExtraFiles = append(files, unused(unix.SOCK_DGRAM), unused(unix.SOCK_STREAM), null)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	lines := run("ours", 6)
	for i, want := range []string{
		"a udp " + udp.LocalAddr().String() + " kept", "b tcp " + tcp.Addr().String() + " kept",
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
