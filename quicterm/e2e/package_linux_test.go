package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/machine/systemd/systemdtest"
)

// A packageHost is a machine on which a package is installed.
type packageHost struct {
	t      *testing.T
	in     func(args ...string) *exec.Cmd // makes a command of root there
	main   string                         // a script that prints the daemon's process, and fails if it does not run
	reload string                         // a script that makes the daemon read its settings again
	log    bool                           // the daemon has a log file
}

func (h *packageHost) command(args ...string) *exec.Cmd {
	cmd := h.in(args...)
	cmd.Env = []string{"HOME=/root", "USER=root", "TERM=xterm", "SHLVL=1", "DEBIAN_FRONTEND=noninteractive",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return cmd
}

// run runs a script there, and returns what it prints.
func (h *packageHost) run(script string) string {
	h.t.Helper()
	out, err := h.command("sh", "-euc", script).CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// bareMachine runs a copy of this machine in namespaces of its own, without an init system. What it
// changes is in memory. $0 is an empty directory, and $1 one that is the same there. Without the
// file auto-update, man-db does not index all pages of the machine after each change of a package.
const bareMachine = `
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$0"
mkdir "$0/upper" "$0/work" "$0/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$0/root"
mount -t proc proc "$0/root/proc"
mount --rbind /dev "$0/root/dev"
mount -t tmpfs tmpfs "$0/root/run"
mkdir -p "$0/root$1"
mount --bind "$1" "$0/root$1"
ip link set lo up
rm -f "$0/root/etc/nologin" "$0/root/var/lib/man-db/auto-update"
printf '#!/bin/sh\nexit 0\n' >"$0/root/usr/sbin/policy-rc.d" # services may be started
chmod 755 "$0/root/usr/sbin/policy-rc.d"
exec chroot "$0/root" sh -c 'echo ready; sleep infinity & wait'
`

// newBareMachine starts such a machine, or skips the test where it cannot. It ends with the test.
func newBareMachine(t *testing.T, dir string) *packageHost {
	for _, tool := range []string{"nsenter", "ip", "/lib/init/init-d-script"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("a machine with scripts for services needs %s", tool)
		}
	}
	first := exec.Command("sh", "-c", bareMachine, t.TempDir(), dir)
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
	ended := make(chan struct{})
	go func() {
		first.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		first.Process.Kill() // and with it all processes of the machine
		<-ended
	})
	for until := time.Now().Add(rig.Patience); !strings.Contains(out.String(), "ready"); time.Sleep(10 * time.Millisecond) {
		select {
		case <-ended:
			t.Skipf("no machine can be made here: %s", out)
		default:
		}
		if time.Now().After(until) {
			t.Fatalf("the machine is not ready: %s", out)
		}
	}
	enter := []string{"--target", strconv.Itoa(first.Process.Pid), "--mount", "--pid", "--net", "--root", "--wd", "--"}
	in := func(args ...string) *exec.Cmd { return exec.Command("nsenter", append(enter, args...)...) }
	return &packageHost{t, in, "/etc/init.d/qtd status >/dev/null; cat /run/qtd.pid", "/etc/init.d/qtd reload", true}
}

// The package is installed, used, upgraded while a user types, and removed, on machines with
// systemd and without. Sessions outlive all of it.
func TestPackage(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("it makes packages, of programs without the race detector")
	}
	if _, err := exec.LookPath("dpkg"); err != nil || os.Geteuid() != 0 {
		t.Skip("installing a package needs dpkg and root")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "debs")
	build := exec.Command("go", "run", "./cmd/dist", "-deb", "1.0.0,1.0.1", "-bin", bin, dir)
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make the packages: %v\n%s", err, out)
	}
	t.Run("bare", func(t *testing.T) {
		t.Parallel()
		testPackage(t, newBareMachine(t, dir), dir)
	})
	t.Run("systemd", func(t *testing.T) {
		t.Parallel()
		m := systemdtest.Boot(t, "rm -f /usr/sbin/policy-rc.d /etc/nologin /var/lib/man-db/auto-update", dir)
		const main = "systemctl is-active --quiet qtd; systemctl show -p MainPID --value qtd"
		testPackage(t, &packageHost{t, m.Command, main, "systemctl reload qtd", false}, dir)
	})
}

func testPackage(t *testing.T, h *packageHost, dir string) {
	install := func(version string) {
		t.Helper()
		h.run(fmt.Sprintf("dpkg --force-unsafe-io -i %s/quicterm_%s_%s.deb", dir, version, runtime.GOARCH))
	}
	install("1.0.0")
	first := h.run(h.main)
	h.run("dpkg -L quicterm | grep -q /man1/qt-connect.1 && dpkg -L quicterm | grep -q /man8/qtd-serve.8")
	const settings = `qtd doctor | grep ' settings '; grep '^[^#]' /etc/quicterm/qtd.toml || true`
	if got := h.run(settings); got != "ok    settings  /etc/quicterm/qtd.toml has no errors" {
		t.Errorf("the settings file, which has only comments:\n%s", got)
	}
	if got := h.run("qt connect localhost 'echo $QUICTERM_BIN'"); got != "/usr/bin" {
		t.Errorf("a command in a session prints %q", got)
	}
	const network = `for p in $(grep -ls "^PPid:[[:space:]]*%s$" /proc/[0-9]*/status); do
		if grep -qs network "${p%%status}cmdline"; then sed -n "s/^Uid:[[:space:]]*//p" "$p"; fi
	done; getent passwd quicterm | cut -d: -f3,7`
	ids := strings.Fields(h.run(fmt.Sprintf(network, first)))
	if len(ids) != 5 || ids[0] == "0" || ids[4] != ids[3]+":/usr/sbin/nologin" {
		t.Errorf("the user ids of the network process, and that of its account: %q", ids)
	}

	x := rig.Open(t, h.command("qt", "connect", "-t", "-s", "work", "localhost", "echo ready; exec cat >/typed"))
	x.Expect("ready")
	h.run(h.reload)
	if now := h.run(h.main); now != first {
		t.Errorf("the daemon was process %s, and after a reload is %s", first, now)
	}
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
	second := h.run(h.main)
	if exe := h.run("readlink /proc/" + second + "/exe"); second == first || exe != "/usr/bin/qtd" {
		t.Errorf("the daemon was process %s, and is %s of %s", first, second, exe)
	}
	x.Send("end\r\x04")
	if status := x.Exit(); status != 0 {
		t.Errorf("the session ends with %d", status)
	}
	if got := h.run("cat /typed"); got != want+"end" {
		t.Errorf("of %d bytes typed over the upgrade, the session got %d, and last %.50q",
			len(want), len(got), got[max(len(got)-50, 0):])
	}

	h.run("dpkg --force-unsafe-io -r quicterm")
	if h.command("kill", "-0", second).Run() == nil {
		t.Error("the daemon runs after the package was removed")
	}
	install("1.0.1")
	if got := h.run("qt connect localhost 'echo back'"); got != "back" {
		t.Errorf("after the package was removed and installed, a command prints %q", got)
	}
	second = h.run(h.main)
	if h.log {
		h.run("mv /var/log/qtd.log /var/log/qtd.log.1; kill -HUP " + second)
		h.run(`n=0; until grep -q event=reload /var/log/qtd.log; do n=$((n+1)); test $n -lt 200; sleep 0.1; done`)
		if got := h.run("stat -c %a:%G /var/log/qtd.log.1 && stat -c %a /var/log/qtd.log"); got != "640:adm\n640" {
			t.Errorf("logs of %q", got)
		}
		h.run("rm /var/log/qtd.log.1")
	}
	h.run("cp /etc/quicterm/qtd.toml /saved; echo 'max_sessions_per_user = 0' >>/etc/quicterm/qtd.toml")
	if out, err := h.command("sh", "-c", h.reload).CombinedOutput(); err == nil {
		t.Errorf("a reload with a mistake in the settings succeeds: %s", out)
	}
	h.run("cp /saved /etc/quicterm/qtd.toml; " + h.reload)

	x = rig.Open(t, h.command("qt", "connect", "-t", "localhost", "echo held by $PPID.; exec sleep infinity"))
	holder := x.Expect(`held by (\d+)\.`)[1]
	h.run("dpkg --force-unsafe-io --purge quicterm")
	if h.command("kill", "-0", second).Run() == nil {
		t.Error("the daemon runs after the package was removed")
	}
	h.run("kill -0 " + holder)
	const files = "/etc/quicterm /usr/bin/qt /usr/bin/qtd /etc/init.d/qtd /etc/logrotate.d/qtd /etc/ufw/applications.d/quicterm /var/log/qtd.log"
	if left := h.run("ls -d " + files + " 2>/dev/null || true"); left != "" {
		t.Errorf("the package leaves %s", left)
	}
}
