package keyring

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// childVar makes the test's executable print what it finds in its session keyring, or keep it as its account's first.
const childVar = "QUICTERM_TEST_KEYRING"

func TestMain(m *testing.M) {
	switch os.Getenv(childVar) {
	case "":
		os.Exit(m.Run())
	case "adopt":
		runtime.LockOSThread()
		Adopt()
	case "container":
		runtime.LockOSThread()
		unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0) // without one, the kernel counts none
		os.Setenv(childVar, "many")
		print(syscall.Exec("/proc/self/exe", os.Args, os.Environ()).Error())
		os.Exit(1)
	case "many":
		useMany()
		os.Exit(0)
	}
	runtime.LockOSThread()
	find := func(name string) bool {
		_, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", name, 0)
		return err == nil
	}
	description, err := unix.KeyctlString(unix.KEYCTL_DESCRIBE, unix.KEY_SPEC_SESSION_KEYRING)
	if err != nil {
		description = err.Error()
	}
	links := make([]byte, 64)
	n, _ := unix.KeyctlBuffer(unix.KEYCTL_READ, unix.KEY_SPEC_SESSION_KEYRING, links, 0)
	print(find("of the daemon"), ";", n/4, ";", description)
}

// A process that Start has started possesses no key of this process's session. The keyring that Adopt leaves belongs to
// its account and has one link, to the account's own keys.
func TestStart(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil {
		t.Skip("no keyrings here: ", err)
	}
	if _, err := unix.AddKey("user", "of the daemon", []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
		t.Fatal(err)
	}
	run := func(mode string, as *syscall.Credential, start func(*exec.Cmd) error) string {
		t.Helper()
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), childVar+"="+mode)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
		var out strings.Builder
		cmd.Stderr = &out
		if err := start(cmd); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		return out.String()
	}
	if got := run("look", nil, (*exec.Cmd).Start); !strings.HasPrefix(got, "true;1;keyring;") {
		t.Fatalf("what inherits the keyring finds %q", got)
	}
	if got := run("look", nil, Start); !strings.HasPrefix(got, "false;0;keyring;") {
		t.Errorf("what Start starts finds %q", got)
	}
	if os.Geteuid() != 0 {
		return
	}
	if got := run("adopt", &syscall.Credential{Uid: 61139, Gid: 61139}, Start); !strings.HasPrefix(got, "false;1;keyring;61139;61139;") {
		t.Errorf("a process of another account that adopts its keyring finds %q", got)
	}
}

// useMany prints how many of some keyrings can be had one after the other, and why not all of them at once.
func useMany() {
	had := 0
	for range 1000 {
		if Do(func() error { return nil }) == nil {
			had++
		}
	}
	held, errs := make(chan bool), make(chan error)
	const atOnce = 300
	for range atOnce {
		go func() {
			err := Do(func() error { errs <- nil; <-held; return nil })
			if err != nil {
				errs <- err
			}
		}()
	}
	var refused error
	for range atOnce {
		if err := <-errs; err != nil {
			refused = err
		}
	}
	close(held)
	if refused == nil {
		print(had, ";")
		return
	}
	print(had, ";", refused.Error())
}

// Root of a container may have 200 keyrings: those of processes that have ended do not count, and who needs more is told
// what to do.
func TestQuota(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVar+"=container")
	container := []syscall.SysProcIDMap{{HostID: 361139, Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: container, GidMappings: container, Credential: &syscall.Credential{},
	}
	out, err := cmd.CombinedOutput()
	if os.Geteuid() != 0 || err != nil {
		t.Skip("no such container here: ", err, string(out))
	}
	had, refused, _ := strings.Cut(string(out), ";")
	if limit, _ := os.ReadFile("/proc/sys/kernel/keys/maxkeys"); had != "1000" || string(limit) == "200\n" && !strings.Contains(refused, "kernel.keys.maxkeys") {
		t.Errorf("%s of 1000 keyrings one after the other; more at once: %s", had, refused)
	}
}
