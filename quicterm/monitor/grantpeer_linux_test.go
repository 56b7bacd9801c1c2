package monitor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/machine/sandbox"
)

// confineVar makes the test's executable confine itself, and execute itself without it.
const confineVar = "QUICTERM_TEST_CONFINE"

// The kernel confines threads. This is the first one, which /proc tells of, and which
// passes its confinement on to the program that it executes.
func init() {
	how := os.Getenv(confineVar)
	if how == "" {
		return
	}
	runtime.LockOSThread()
	if err := enterSandbox(how); err != nil {
		fmt.Println("skip:", err)
		os.Exit(0)
	}
	exe, err := os.Executable()
	if err == nil {
		err = syscall.Exec(exe, []string{exe}, []string{grantVar + "=" + os.Getenv(grantVar), holdertest.QuickExit})
	}
	fmt.Println(err)
	os.Exit(1)
}

func enterSandbox(how string) error {
	switch how {
	case "no_new_privs":
		return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	case "seccomp": // of a filter that allows everything
		allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
		program := unix.SockFprog{Len: 1, Filter: &allow}
		return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	case "bounding":
		return unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_NET_BIND_SERVICE, 0, 0, 0)
	}
	return nil
}

// A process in a sandbox gets no grant, for a session would get it out. Any other process
// gets one.
func TestSandboxGetsNoGrant(t *testing.T) {
	path := grantingDaemon(t, Config{Granted: true})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ids := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, bounding, _ := strings.Cut(string(status), "CapBnd:\t")
	bounding, _, _ = strings.Cut(bounding, "\n")
	rights, _ := strconv.ParseUint(bounding, 16, 64)
	already := map[string]bool{
		"no_new_privs": strings.Contains(string(status), "NoNewPrivs:\t1"),
		"bounding":     rights&(1<<unix.CAP_NET_BIND_SERVICE) == 0,
	}
	for _, test := range []struct {
		name, how string
		attr      syscall.SysProcAttr
		want      string
	}{
		{name: "plain", want: "granted"},
		{name: "of another session", attr: syscall.SysProcAttr{Setsid: true}, want: "granted"},
		{name: "no_new_privs", how: "no_new_privs", want: "no_new_privs"},
		{name: "seccomp", how: "seccomp", want: "a seccomp filter"},
		{name: "bounding", how: "bounding", want: "fewer capabilities"},
		{name: "user", attr: syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
			UidMappings: ids(os.Geteuid()), GidMappings: ids(os.Getegid())}, want: "another user namespace"},
		{name: "mnt", attr: syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}, want: "another mnt namespace"},
		{name: "pid", attr: syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, want: "another pid namespace"},
		{name: "net", attr: syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}, want: "another net namespace"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if already[test.name] {
				t.Skip("this process is confined so itself")
			}
			cmd := exec.Command(exe)
			cmd.Env = []string{grantVar + "=" + path, confineVar + "=" + test.how, holdertest.QuickExit}
			cmd.SysProcAttr = &test.attr
			out, err := cmd.CombinedOutput()
			if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || strings.HasPrefix(string(out), "skip:") {
				t.Skipf("this account cannot make such a sandbox: %v %s", err, out)
			}
			if got := string(out); err != nil || !strings.Contains(got, test.want) {
				t.Errorf("%q, %v; want %q", got, err, test.want)
			}
		})
	}
}

// A process whose number another one may have by now gets no grant.
func TestGrantOfEndedProcess(t *testing.T) {
	dir := holdertest.ReachableDir(t)
	path := filepath.Join(dir, "s")
	l, err := rundir.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = []string{grantVar + "=" + path, holdertest.QuickExit}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := sandbox.CheckPeer(c, false); err != nil {
		t.Errorf("while it lives: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := sandbox.CheckPeer(c, false); err == nil {
		t.Error("it is accepted after its end")
	}
}
