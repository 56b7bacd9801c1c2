//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cellVar makes the test's executable enter a cell and try to get out of it.
const cellVar = "QUICTERM_TEST_CELL"

func TestMain(m *testing.M) {
	if root := os.Getenv(cellVar); root != "" {
		if err := inCell(root, os.Getenv(cellVar+"_MOUNTS") != ""); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// inCell enters a cell, and returns what is possible in it that should not be, or what is not that
// should.
func inCell(root string, mounts bool) error {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	other, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	all := classes()
	var opened []int
	for _, c := range all {
		opened = append(opened, c.open())
	}
	parent := os.Getppid()
	cell := Cell{UID: 61139, GID: 61140, Root: root, Mounts: mounts}
	missing, err := cell.Enter()
	if err := errors.Join(append(missing, err)...); err != nil {
		return err
	}
	if os.Getuid() != 61139 || os.Getgid() != 61140 {
		return fmt.Errorf("it has the user id %d and the group id %d", os.Getuid(), os.Getgid())
	}
	for what, try := range map[string]func() error{
		"open a file":   func() error { _, err := os.Open("/etc/passwd"); return err },
		"make a file":   func() error { return os.WriteFile("/x", nil, 0o600) },
		"list a folder": func() error { _, err := os.ReadDir("/"); return err },
		"make a socket": func() error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
		"connect":       func() error { _, err := net.Dial("unix", "@x"); return err },
		"bind":          func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err },
		"run a program": func() error { return exec.Command("/proc/self/exe").Run() },
		"fork": func() error {
			_, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			return errno
		},
		"signal another":   func() error { return syscall.Kill(parent, 0) },
		"be root":          func() error { return syscall.Setuid(0) },
		"trace":            func() error { return unix.PtraceAttach(parent) },
		"mount":            func() error { return unix.Mount("none", "/", "tmpfs", 0, "") },
		"make a namespace": func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"read memory of another": func() error {
			b := make([]byte, 1)
			_, err := unix.ProcessVMReadv(parent, []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: 4096, Len: 1}}, 0)
			return err
		},
		"see its keys": func() error { _, err := unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, -3, 0, 0, 0); return err },
	} {
		if try() == nil {
			return fmt.Errorf("it can %s", what)
		}
	}
	if err := errors.Join(tryDescriptors(all, opened), tryCalls()); err != nil {
		return err
	}
	// What it is for.
	var wg sync.WaitGroup
	for range 50 { // which needs new threads
		wg.Go(func() { time.Sleep(time.Millisecond) })
	}
	wg.Wait()
	if _, err := other.WriteTo([]byte("x"), socket.LocalAddr()); err != nil {
		return err
	}
	socket.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, _, err = socket.ReadFrom(make([]byte, 1))
	return err
}

// A process in a cell can use the sockets that it has, and nothing else, whether it has namespaces of
// its own or not.
func TestCell(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a cell")
	}
	for _, flags := range []uintptr{Namespaces[1], 0} {
		root := t.TempDir()
		if err := os.Chmod(root, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), cellVar+"="+root, "GORACE=atexit_sleep_ms=0")
		if flags != 0 {
			cmd.Env = append(cmd.Env, cellVar+"_MOUNTS=1")
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		out, err := cmd.CombinedOutput()
		switch {
		case errors.Is(err, syscall.EPERM) && len(out) == 0:
			t.Log("no mount namespaces here")
		// A container may refuse a filter; of this one, the kernel would say that it is invalid.
		case err != nil && strings.Contains(string(out), "seccomp: ") && !strings.Contains(string(out), unix.EINVAL.Error()):
			t.Skipf("%s", out)
		case err != nil:
			t.Errorf("namespaces %#x: %v\n%s", flags, err, out)
		}
	}
}

// The ids of root are none for a cell.
func TestCellOfRoot(t *testing.T) {
	for _, cell := range []Cell{{}, {UID: 61139}, {GID: 61139}} {
		cell.Root = t.TempDir()
		if _, err := cell.Enter(); err == nil {
			t.Errorf("root is confined as %+v", cell)
		}
	}
}
