//go:build linux

// Package systemdtest boots a real systemd for tests: in namespaces, on a copy of the root directory
// that is thrown away. It runs beside the machine's own programs and changes nothing of them.
package systemdtest

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

//go:embed boot.sh
var boot string

// bootTime bounds how long systemd may take to start, on a loaded machine.
const bootTime = time.Minute

// A Machine is a systemd that runs, with what it has started. It has a network of its own, with a
// loopback interface only.
type Machine struct {
	t   testing.TB
	pid string // of its process 1, as this process sees it
}

// Boot starts a machine, which ends with the test. The shell script prepare runs before that, as root in the
// machine's root directory; the given directories are the same in it. Boot skips the test where systemd cannot run.
func Boot(t testing.TB, prepare string, dirs ...string) *Machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("systemd can only be run by root")
	}
	for _, file := range []string{"/lib/systemd/systemd", "/usr/bin/dbus-daemon"} {
		if _, err := os.Stat(file); err != nil {
			t.Skip("systemd and dbus are not installed: ", err)
		}
	}
	if out, err := exec.Command("unshare", "--mount", "--cgroup", "--pid", "--fork", "--uts", "--ipc", "--net",
		"sh", "-ec", `mount --make-rprivate / && mount -t tmpfs tmpfs /tmp && mount -t cgroup2 cgroup2 /tmp &&
			rmdir "$(mktemp --directory /tmp/qt-test-XXXXXX)"`,
	).CombinedOutput(); err != nil {
		t.Skipf("systemd cannot run in namespaces here: %v\n%s", err, out)
	}
	cmd := exec.Command("unshare", append([]string{"--mount", "sh", "-c", boot, "boot", t.TempDir(), prepare}, dirs...)...)
	log := new(logWriter)
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m := &Machine{t: t}
	t.Cleanup(func() {
		if t.Failed() && m.pid != "" {
			journal, _ := m.Command("journalctl", "--no-pager", "--lines=300", "--output=short-monotonic").CombinedOutput()
			t.Logf("the machine's journal:\n%s", journal)
		}
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("end of the machine: %v", err)
		}
		if t.Failed() {
			t.Logf("the machine's console:\n%s", log)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the machine does not start: %v\n%s", err, log)
	}
	unshare := strings.TrimSpace(line)
	m.Await("systemd to run", func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%s/task/%s/children", unshare, unshare))
		m.pid = strings.TrimSpace(string(b))
		comm, _ := os.ReadFile("/proc/" + m.pid + "/comm")
		return m.pid != "" && string(comm) == "systemd\n"
	})
	m.Await("systemd to be up", func() bool {
		out, _ := m.Command("systemctl", "is-system-running").Output()
		state := strings.TrimSpace(string(out))
		return state == "running" || state == "degraded"
	})
	return m
}

// Command returns a command in the machine, as root, outside of all its units.
func (m *Machine) Command(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--target", m.pid, "--all", "--"}, args...)...)
}

// Run runs a shell script in the machine, as root, and returns its output.
func (m *Machine) Run(script string) string {
	m.t.Helper()
	cmd := m.Command("sh", "-euc", script)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s%s", script, err, out, errs.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// PID returns the process id that a process of the machine has there, from that it has here.
func (m *Machine) PID(here int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", here))
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "NSpid:" {
			pid, _ := strconv.Atoi(f[len(f)-1])
			return pid
		}
	}
	return 0
}

// Await waits until a condition is true.
func (m *Machine) Await(what string, ok func() bool) {
	m.t.Helper()
	for end := time.Now().Add(bootTime); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatalf("waiting for %s for %v", what, bootTime)
		}
	}
}

// A logWriter keeps what is written to it.
type logWriter struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logWriter) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
