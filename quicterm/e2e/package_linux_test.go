package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// A copiedMachine is a copy of this one in namespaces of its own: it has the same files, but what it
// changes is in memory, and lost when it ends. It has no init system.
type copiedMachine struct {
	t    *testing.T
	init int // its first process
}

// prepareMachine makes what a package needs: the file systems, the loopback interface, and the
// permission to start services.
const prepareMachine = `
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$0"
mkdir "$0/upper" "$0/work" "$0/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$0/root"
mount -t proc proc "$0/root/proc"
mount --rbind /dev "$0/root/dev"
mount -t tmpfs tmpfs "$0/root/run"
ip link set lo up
printf '#!/bin/sh\nexit 0\n' >"$0/root/usr/sbin/policy-rc.d"
chmod 755 "$0/root/usr/sbin/policy-rc.d"
exec chroot "$0/root" sh -c 'echo ready; sleep infinity & wait'
`

// copyMachine makes one, or skips the test where it cannot.
func copyMachine(t *testing.T) *copiedMachine {
	if os.Geteuid() != 0 {
		t.Skip("installing a package needs root")
	}
	for _, tool := range []string{"dpkg", "nsenter", "ip", "/lib/init/init-d-script"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("installing a package as on Debian needs %s", tool)
		}
	}
	first := exec.Command("sh", "-c", prepareMachine, t.TempDir())
	first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
	}
	out := new(rig.Output)
	first.Stdout, first.Stderr = out, out
	runtime.LockOSThread() // whose end would be a death signal
	t.Cleanup(runtime.UnlockOSThread)
	if err := first.Start(); err != nil {
		t.Skipf("namespaces are not permitted: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- first.Wait() }()
	t.Cleanup(func() {
		first.Process.Kill() // and with it all processes of the machine
		<-done
	})
	for until := time.Now().Add(rig.Patience); !strings.Contains(out.String(), "ready"); time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-done:
			done <- err
			t.Skipf("no machine can be made here: %v: %s", err, out)
		default:
		}
		if time.Now().After(until) {
			t.Fatalf("the machine is not ready: %s", out)
		}
	}
	return &copiedMachine{t, first.Process.Pid}
}

// command returns a command that runs in the machine, as after a login of root.
func (m *copiedMachine) command(args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(m.init), "-m", "-p", "-n", "-r", "-w"}, args...)...)
	cmd.Env = []string{"HOME=/root", "USER=root", "TERM=xterm", "SHLVL=1", "DEBIAN_FRONTEND=noninteractive",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return cmd
}

// run runs a command in the machine, and returns what it prints.
func (m *copiedMachine) run(args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// path returns the name of a file of the machine.
func (m *copiedMachine) path(name string) string {
	return fmt.Sprintf("/proc/%d/root/%s", m.init, name)
}

// daemon returns the process of the daemon, as the machine numbers it.
func (m *copiedMachine) daemon() string {
	m.t.Helper()
	m.run("/etc/init.d/qtd", "status")
	b, err := os.ReadFile(m.path("run/qtd.pid"))
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// The package is installed, used, upgraded while somebody types, and removed. The session outlives
// all of it.
func TestPackage(t *testing.T) {
	if raceEnabled {
		t.Skip("the package is of programs without the race detector")
	}
	t.Parallel()
	m := copyMachine(t)
	dir := filepath.Join(t.TempDir(), "debs")
	build := exec.Command("go", "run", "./cmd/dist", "-deb", "1.0.0,1.0.1", "-bin", bin, dir)
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make the packages: %v\n%s", err, out)
	}
	install := func(version string) {
		t.Helper()
		name := fmt.Sprintf("quicterm_%s_%s.deb", version, runtime.GOARCH)
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(m.path(name), content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		m.run("dpkg", "--force-unsafe-io", "-i", "/"+name)
	}

	install("1.0.0")
	first := m.daemon()
	if files := m.run("dpkg", "-L", "quicterm"); !regexp.MustCompile(`(?s)/usr/share/man/man1/qt-connect\.1.*/usr/share/man/man8/qtd-serve\.8`).MatchString(files) {
		t.Errorf("the package has these files:\n%s", files)
	}
	if got := m.run("qt", "connect", "localhost", "echo $QUICTERM_BIN"); got != "/usr/bin\n" {
		t.Errorf("a command in a session prints %q", got)
	}

	x := rig.Open(t, m.command("qt", "connect", "-t", "-s", "work", "localhost", "echo ready; exec cat >/typed"))
	x.Expect("ready")
	upgraded := make(chan struct{})
	typed := make(chan string)
	go func() {
		var lines strings.Builder
		for i, more := 0, 20; more > 0; i++ {
			select {
			case <-upgraded:
				more--
			default:
			}
			fmt.Fprintf(&lines, "line %d\n", i)
			fmt.Fprintf(x.TTY, "line %d\r", i)
			time.Sleep(20 * time.Millisecond) // between two lines
		}
		typed <- lines.String()
	}()
	install("1.0.1")
	close(upgraded)
	want := <-typed
	second := m.daemon()
	if exe := m.run("readlink", "/proc/"+second+"/exe"); second == first || exe != "/usr/bin/qtd\n" {
		t.Errorf("the daemon was process %s, and is %s of %s", first, second, exe)
	}
	x.Send("end\r\x04")
	if status := x.Exit(); status != 0 {
		t.Errorf("the session ends with %d", status)
	}
	if got, err := os.ReadFile(m.path("typed")); err != nil || string(got) != want+"end\n" {
		t.Errorf("%v: of %d bytes typed over the upgrade, the session got %d, and last %.50q",
			err, len(want), len(got), got[max(len(got)-50, 0):])
	}

	x = rig.Open(t, m.command("qt", "connect", "-t", "localhost", "echo held by $PPID.; exec sleep infinity"))
	holder := x.Expect(`held by (\d+)\.`)[1]
	m.run("dpkg", "--force-unsafe-io", "--purge", "quicterm")
	if err := m.command("kill", "-0", second).Run(); err == nil {
		t.Error("the daemon runs after the package was removed")
	}
	m.run("kill", "-0", holder)
	for _, name := range []string{"usr/bin/qt", "usr/bin/qtd", "etc/init.d/qtd", "etc/ufw/applications.d/quicterm", "var/log/qtd.log"} {
		if _, err := os.Lstat(m.path(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}
