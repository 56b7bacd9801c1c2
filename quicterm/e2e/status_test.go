//go:build linux || darwin

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A clientStatus is what we look at of what qt status --json says.
type clientStatus struct {
	PID     int    `json:"pid"`
	Host    string `json:"host"`
	Session string `json:"session"`
	State   string `json:"state"`
	Paths   []struct {
		Interface   string    `json:"interface"`
		Remote      string    `json:"remote"`
		State       string    `json:"state"`
		RTT         float64   `json:"rtt_ms"`
		Sent        uint64    `json:"sent_bytes"`
		Received    uint64    `json:"received_bytes"`
		LastContact time.Time `json:"last_contact"`
	} `json:"paths"`
}

// statusOf returns what qt status says of a process, or nil. There may be other
// clients on this machine.
func statusOf(t *testing.T, cmd *exec.Cmd) *clientStatus {
	t.Helper()
	out, err := exec.Command(filepath.Join(bin, "qt"), "status", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []*clientStatus
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, s := range all {
		if s.PID == cmd.Process.Pid {
			return s
		}
	}
	return nil
}

func TestStatus(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	x := h.Shell(p.Addr(), "-s", "work")
	pipe := h.Via(h.Addr, "connect", []string{"-s", "data"}, "echo; cat")
	in, err := pipe.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := rig.NewOutput()
	pipe.Stdout = out
	if err := pipe.Start(); err != nil {
		t.Fatal(err)
	}
	out.Await(t, 0, regexp.MustCompile("\n"))
	for _, want := range []struct {
		cmd     *exec.Cmd
		session string
		remote  string
	}{{x.Cmd, "work", p.Addr().String()}, {pipe, "data", h.Addr.String()}} {
		got := statusOf(t, want.cmd)
		if got == nil || got.Host != "127.0.0.1" || got.Session != want.session || got.State != "live" || len(got.Paths) != 1 {
			t.Fatalf("%s: got %+v", want.session, got)
		}
		if path := got.Paths[0]; path.State != "live" || path.Remote != want.remote || path.Interface == "" || path.RTT <= 0 ||
			path.Sent == 0 || path.Received == 0 || time.Since(path.LastContact) > time.Minute {
			t.Errorf("%s: got the path %+v, want one to %s", want.session, path, want.remote)
		}
	}
	text, err := exec.Command(filepath.Join(bin, "qt"), "status").Output()
	header := fmt.Sprintf("127.0.0.1, process %d, session work: live since ", x.Cmd.Process.Pid)
	if err != nil || !strings.Contains(string(text), header) || !regexp.MustCompile(`\n  remote +`+p.Addr().String()+"\n").Match(text) {
		t.Errorf("got %v\n%s", err, text)
	}

	// Without contact it is told at once, on the terminal too.
	p.Set(netem.Config{Down: true})
	x.Send("x\r")
	for until := time.Now().Add(rig.Patience); ; time.Sleep(50 * time.Millisecond) {
		if got := statusOf(t, x.Cmd); got != nil && got.State != "live" {
			break
		} else if time.Now().After(until) {
			t.Fatalf("without contact: got %+v", got)
		}
	}
	begun := time.Now()
	x.Send("~s")
	x.Expect(regexp.QuoteMeta(strings.TrimSuffix(header, "live since ")) + "(suspect|offline) since ")
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("~s took %v", took)
	}

	// Who has ended is not listed, and who was killed leaves no socket behind.
	in.Close()
	if err := pipe.Wait(); err != nil {
		t.Error(err)
	}
	before := sockets(t)
	x.Cmd.Process.Kill()
	x.Cmd.Wait()
	for _, cmd := range []*exec.Cmd{x.Cmd, pipe} {
		if got := statusOf(t, cmd); got != nil {
			t.Errorf("got %+v of a process that has ended", got)
		}
	}
	gone := 0
	for _, path := range before {
		if _, err := os.Lstat(path); err != nil {
			gone++
		}
	}
	if gone == 0 {
		t.Errorf("all of %v are left", before)
	}
}

// sockets returns those of the clients of this account.
func sockets(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"/run/quicterm/%d", "/tmp/quicterm-%d"} {
		found, err := filepath.Glob(filepath.Join(fmt.Sprintf(pattern, os.Geteuid()), "client-*.sock"))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	return paths
}

// Another account sees none of our clients, and that is no error.
func TestStatusOfStranger(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process as another user")
	}
	h := newHost(t)
	h.Start()
	h.Shell(h.Addr)
	qt := strangersQT(t)
	for _, test := range []struct{ args, out, errs string }{
		{"status --json", "[]\n", ""},
		{"status", "", "qt: no client is running\n"},
	} {
		cmd := exec.Command(qt, strings.Fields(test.args)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil || out.String() != test.out || errs.String() != test.errs {
			t.Errorf("%s: %v, said %q and %q; want %q and %q", test.args, err, out.String(), errs.String(), test.out, test.errs)
		}
	}
	for _, path := range sockets(t) {
		cmd := exec.Command("cat", filepath.Dir(path)+"/.")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "ermission denied") {
			t.Errorf("a stranger at %s: %q, %v; want permission denied", path, out, err)
		}
	}
}

// stranger is a user id that nobody uses here.
const stranger = 65533

// strangersQT returns a copy of qt that anybody can run.
func strangersQT(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	qt := filepath.Join(dir, "qt")
	b, err := os.ReadFile(filepath.Join(bin, "qt"))
	if err == nil {
		err = os.WriteFile(qt, b, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return qt
}
