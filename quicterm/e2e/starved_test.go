//go:build linux || darwin

package e2e

import (
	"io"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// A client that is stopped for longer than it waits for a sign of life knows that it was
// stopped: it dials nothing before the server had time to answer.
func TestStoppedClient(t *testing.T) {
	h := newHost(t)
	h.Client["keepalive_idle"] = `"1s"`
	h.Start()
	cmd := h.Via(h.Addr, "connect", []string{"-v"}, "cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, errs := new(rig.Output), new(rig.Output)
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(4*rig.Patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	io.WriteString(stdin, "before ")
	out.Await(t, 0, regexp.MustCompile("before "))
	live := func() bool {
		got := statusOf(t, cmd)
		return got != nil && got.State == "live"
	}
	for until := time.Now().Add(rig.Patience); !live(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the session is not live")
		}
	}
	before := errs.String()
	cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(3300 * time.Millisecond)                // a keepalive is overdue by three intervals
	continued := time.Now().Truncate(time.Millisecond) // as in the log
	cmd.Process.Signal(syscall.SIGCONT)
	noticed := logTime(t, errs.Await(t, len(before), regexp.MustCompile(`time=(\S+) \S+ msg="this client did not run`))[1])
	io.WriteString(stdin, "and after")
	out.Await(t, 0, regexp.MustCompile("before and after"))
	after := errs.String()[len(before):]
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, errs)
	}
	if strings.Contains(before, "msg=dialing") {
		t.Skip("the machine is so busy that the client looked for other paths before")
	}
	// On a busy machine the server may be late too, but not by less than a client waits. The client may have dialed
	// before it was stopped.
	for _, dial := range regexp.MustCompile(`time=(\S+) \S+ msg=dialing`).FindAllStringSubmatch(after, -1) {
		at := logTime(t, dial[1])
		if d := at.Sub(noticed); !at.Before(continued) && d < 200*time.Millisecond {
			t.Errorf("a dial %v after the client noticed that it did not run:\n%s", d, after)
		}
	}
}

func logTime(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(s))
	if err != nil {
		t.Fatal(err)
	}
	return at
}
