package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// A controlGroup limits processes, and ends with the test and with them.
type controlGroup struct {
	t   *testing.T
	dir string
}

// newControlGroup makes a group of a controller, or skips the test. The controller's groups have one of files.
func newControlGroup(t *testing.T, controller string, files ...string) *controlGroup {
	t.Helper()
	why := errors.New("no control groups")
	for _, above := range []string{filepath.Join("/sys/fs/cgroup", controller), "/sys/fs/cgroup"} {
		dir := filepath.Join(above, fmt.Sprintf("qt-test-%d-%s", os.Getpid(), t.Name()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			why = err
			continue
		}
		g := &controlGroup{t, dir}
		t.Cleanup(g.remove)
		if slices.ContainsFunc(files, g.has) {
			return g
		}
		why = fmt.Errorf("the controller %s is not enabled", controller)
	}
	t.Skip(why)
	return nil
}

// has reports whether the group has a file.
func (g *controlGroup) has(file string) bool {
	_, err := os.Stat(filepath.Join(g.dir, file))
	return err == nil
}

// set writes one of the files.
func (g *controlGroup) set(file, value string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0); err != nil {
		g.t.Fatal(err)
	}
}

// await waits until one of the files matches.
func (g *controlGroup) await(file, want string) {
	g.t.Helper()
	for until := time.Now().Add(rig.Patience); ; time.Sleep(10 * time.Millisecond) {
		b, err := os.ReadFile(filepath.Join(g.dir, file))
		if regexp.MustCompile(want).Match(b) {
			return
		}
		if time.Now().After(until) {
			g.t.Fatalf("%s is %q, %v; want %s", file, b, err, want)
		}
	}
}

// remove kills the processes of the group, which may fork meanwhile, and removes it.
func (g *controlGroup) remove() {
	for until := time.Now().Add(rig.Patience); time.Now().Before(until); time.Sleep(time.Millisecond) {
		b, _ := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
		for _, field := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(field); err == nil {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if err := os.Remove(g.dir); err == nil {
			return
		}
	}
	g.t.Errorf("%s stays", g.dir)
}

// processOf returns the process that a shell names by a word, such as $$.
func processOf(t *testing.T, x *rig.Terminal, word string) string {
	t.Helper()
	x.Send("echo pro''cess " + word + "\r")
	pid := x.Expect("process ([0-9]+)\r")[1]
	x.Expect(`\$ `)
	return pid
}

// wantUndisturbed checks that a session answers, and that another one starts.
func wantUndisturbed(t *testing.T, h *rig.Host, x *rig.Terminal) {
	t.Helper()
	for range 5 {
		x.Run("echo still he''re", "still here")
	}
	wantOutput(t, h.QT("connect", "echo another one"), "another one\n")
}

// A fork bomb takes the processes that its session may have, and no others: the daemon and the holders
// are not within the limit.
func TestForkBomb(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("control groups need root")
	}
	h := newHost(t)
	g := newControlGroup(t, "pids", "pids.max")
	h.Start()
	other, bomb := h.Shell(h.Addr), h.Shell(h.Addr)
	g.set("pids.max", "20")
	g.set("cgroup.procs", processOf(t, bomb, "$$"))
	bomb.Send("b() { b | b & }; while :; do b; done\r")
	g.await("pids.events", "max [1-9]")
	wantUndisturbed(t, h, other)
}

// Sessions that print without end leave others alone, also if nobody reads what one of them prints.
func TestOutputFloods(t *testing.T) {
	h := newHost(t)
	h.Start()
	other, read, unread := h.Shell(h.Addr), h.Shell(h.Addr), h.Shell(h.Addr)
	read.Send("yes flood\r")
	read.Expect("flood\r\nflood")
	unread.Send("yes flood\r")
	unread.Expect("flood\r\nflood")
	unread.Cmd.Process.Signal(syscall.SIGSTOP)
	t.Cleanup(func() { unread.Cmd.Process.Signal(syscall.SIGCONT) })
	wantUndisturbed(t, h, other)
	read.Send("\x03")
	read.Expect(`\$ `)
}

// A client with more variables than a session gets, and larger ones, gets a session with those that fit, and so does
// a program in it with as many.
func TestHugeEnvironment(t *testing.T) {
	const most = 128 << 10 // bytes of a variable, for the kernel
	const fits = "LC_FITS=it fits"
	many, large := []string{fits}, []string(nil)
	for n := range 100_000 {
		many = append(many, fmt.Sprintf("LC_%d=x", n))
	}
	for n := range 8 {
		large = append(large, fmt.Sprintf("LC_%d=%s", n, strings.Repeat("x", most-100)))
	}
	large = append(large, fits)
	h := newHost(t)
	h.Start()
	other := h.Shell(h.Addr)
	for _, env := range [][]string{many, large} {
		cmd := h.QT("connect", "echo \"$LC_FITS\"")
		cmd.Env = slices.Concat(cmd.Env, env)
		wantOutput(t, cmd, "it fits\n")
	}
	x := h.Shell(h.Addr)
	x.Run("pad=$(head -c 500 /dev/zero | tr '\\0' x); env $(seq -f V%.0f=$pad 2000) env | grep -c ^V", "\n2000\r") // 1 MB
	wantUndisturbed(t, h, other)
	x.Send("exit\r")
	x.Exit()
}

// limitMemory puts the holder of a session into a group with a limit, and returns its process. What it has
// already does not count.
func limitMemory(t *testing.T, x *rig.Terminal, limit int) (pid int) {
	t.Helper()
	const version1, version2 = "memory.limit_in_bytes", "memory.max"
	g := newControlGroup(t, "memory", version1, version2)
	pid = x.Holder()
	memory, swap := version2, "memory.swap.max"
	if g.has(version1) {
		memory, swap = version1, "memory.memsw.limit_in_bytes"
	}
	g.set(memory, strconv.Itoa(limit))
	os.WriteFile(filepath.Join(g.dir, swap), []byte(strconv.Itoa(limit*strings.Count(swap, "memsw"))), 0) // where there is swap
	g.set("cgroup.procs", strconv.Itoa(pid))
	return pid
}

// A holder whose control group has less memory than the ring could take keeps less output, and lives.
func TestHolderMemoryLimit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("control groups need root")
	}
	if raceEnabled {
		t.Skip("a program with the race detector takes several times the memory")
	}
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	pid := limitMemory(t, x, 24<<20)
	x.Send("while [ ! -e " + h.Path("away") + " ]; do sleep 0.01; done; yes 'a line of output' | head -c 30000000; touch " + h.Path("done") + "; echo the e''nd\r")
	x.Send("~.")
	x.Exit()
	h.Write("away", "")
	for until := time.Now().Add(3 * rig.Patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(h.Path("done")); err == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the output does not end; its holder: %v", syscall.Kill(pid, 0))
		}
	}
	x = rig.Open(t, h.QT("attach", "work"))
	x.Expect("the end")
	x.Run("echo still he''re", "still here")
	x.Send("exit\r")
	x.Exit()
}

// One that is killed for its memory leaves its record.
func TestHolderOutOfMemory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("control groups need root")
	}
	h := persistent(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Run("echo be''fore", "before")
	awaitRecord(t, h, "before")
	limitMemory(t, x, 64<<10)
	x.Send("yes 'a line of output'\r")
	h.Log.Await(t, 0, regexpEnd)
	awaitList(t, h, " work +lost ")
	x = rig.Open(t, h.QT("attach", "work"))
	x.Expect("its holder was killed")
	x.Exit()
}
