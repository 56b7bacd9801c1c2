//go:build linux || darwin

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// qt status lists the clients of this account, with their paths and state.
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
	out := new(rig.Output)
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
		var got *clientStatus
		settled := func() bool { // a client on a busy machine may look for other paths meanwhile
			got = statusOf(t, want.cmd)
			return got != nil && got.State == "live" && len(got.Paths) == 1 && got.Paths[0].State == "live"
		}
		for until := time.Now().Add(rig.Patience); !settled(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s: got %+v", want.session, got)
			}
		}
		if got.Host != "127.0.0.1" || got.Session != want.session {
			t.Errorf("%s: got %+v", want.session, got)
		}
		if path := got.Paths[0]; path.Remote != want.remote || path.Interface == "" || path.RTT <= 0 ||
			path.Sent == 0 || path.Received == 0 || time.Since(path.LastContact) > time.Minute {
			t.Errorf("%s: got the path %+v, want one to %s", want.session, path, want.remote)
		}
	}
	header := fmt.Sprintf("127.0.0.1, process %d, session work: ", x.Cmd.Process.Pid)
	for until := time.Now().Add(rig.Patience); ; time.Sleep(50 * time.Millisecond) {
		text, err := exec.Command(filepath.Join(bin, "qt"), "status").Output()
		if err == nil && strings.Contains(string(text), header+"live since ") && regexp.MustCompile(`\n  remote +`+p.Addr().String()+"\n").Match(text) {
			break
		} else if time.Now().After(until) {
			t.Fatalf("got %v\n%s", err, text)
		}
	}

	// An outage shows in qt status, and in ~# on the terminal without delay.
	p.Set(netem.Config{Down: true})
	x.Send("x\r")
	for until := time.Now().Add(rig.Patience); ; time.Sleep(50 * time.Millisecond) {
		if got := statusOf(t, x.Cmd); got != nil && got.State != "live" {
			break
		} else if time.Now().After(until) {
			t.Fatalf("during an outage: got %+v", got)
		}
	}
	begun := time.Now()
	x.Send("~#")
	x.Expect(regexp.QuoteMeta(header) + "(suspect|offline) since ")
	if took := time.Since(begun); took > rig.Patience/2 {
		t.Errorf("~# took %v", took)
	}

	// Clients that have exited are not listed, and the socket of a killed one is removed.
	in.Close()
	if err := pipe.Wait(); err != nil {
		t.Error(err)
	}
	before := clientSockets(t)
	x.Cmd.Process.Kill()
	x.Cmd.Wait()
	for _, cmd := range []*exec.Cmd{x.Cmd, pipe} {
		if got := statusOf(t, cmd); got != nil {
			t.Errorf("got %+v for a process that has exited", got)
		}
	}
	refuses := func(path string) bool {
		c, err := net.Dial("unix", path)
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	// Clients of other tests are killed at any time.
	for until := time.Now().Add(rig.Patience); slices.ContainsFunc(before, refuses); statusOf(t, x.Cmd) {
		if time.Now().After(until) {
			t.Fatalf("one of %v remains that refuses", before)
		}
	}
}

// A clientStatus is the part of the output of qt status --json that tests check.
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
	Forwards []struct {
		Kind     string `json:"kind"`
		Listen   string `json:"listen"`
		Target   string `json:"target"`
		Open     int    `json:"open"`
		Sent     uint64 `json:"sent_bytes"`
		Received uint64 `json:"received_bytes"`

		Signatures int       `json:"signatures"`
		Signed     time.Time `json:"signed"`
	} `json:"forwards"`
}

// statusOf returns the status of the client with a process, or nil. Other clients may
// run on this machine.
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

// clientSockets returns the sockets of the clients of this account.
func clientSockets(t *testing.T) (paths []string) {
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

// Another account does not see our clients: its list is empty.
func TestStatusOtherAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process as another user")
	}
	h := newHost(t)
	h.Start()
	h.Shell(h.Addr)
	qt := publicQT(t)
	for _, test := range []struct{ args, out, errs string }{
		{"status --json", "[]\n", ""},
		{"status", "", "qt: no client is running\n"},
	} {
		cmd := exec.Command(qt, strings.Fields(test.args)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUID, Gid: otherUID}}
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil || out.String() != test.out || errs.String() != test.errs {
			t.Errorf("%s: %v, output %q, errors %q; want %q, %q", test.args, err, out.String(), errs.String(), test.out, test.errs)
		}
	}
	for _, path := range clientSockets(t) {
		cmd := exec.Command("cat", filepath.Dir(path)+"/.")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUID, Gid: otherUID}}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "ermission denied") {
			t.Errorf("another account lists %s: %q, %v; want permission denied", path, out, err)
		}
	}
}

// otherUID is a user id that no account has.
const otherUID = 65533

// publicQT returns a copy of qt that every account can run.
func publicQT(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	qt := filepath.Join(dir, "qt")
	copyFile(t, filepath.Join(bin, "qt"), qt, nil)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return qt
}
