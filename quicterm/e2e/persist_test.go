//go:build linux || darwin

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// persistent returns a host whose sessions are kept on disk.
func persistent(t *testing.T) *rig.Host {
	h := newHost(t)
	h.Settings["persist"] = `"screen"`
	h.Settings["persist_dir"] = `"` + h.Path("sessions") + `"`
	return h
}

// awaitRecord waits until a complete record has a text: one that is being written has another name.
func awaitRecord(t *testing.T, h *rig.Host, text string) {
	t.Helper()
	for until := time.Now().Add(rig.Patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		files, _ := filepath.Glob(h.Path("sessions/*[0-9a-f]"))
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(text)) {
				return
			}
		}
	}
	t.Fatalf("no record has %q", text)
}

// regexpEnd matches what the daemon logs when a session is over.
var regexpEnd = regexp.MustCompile(`event=end (status|error="its holder was killed")`)

// loseSession ends the holder of a session that is attached by a signal, and waits until that is gone.
func loseSession(t *testing.T, h *rig.Host, x *rig.Terminal, sig syscall.Signal) {
	t.Helper()
	pid := x.Holder()
	x.Send("~.")
	x.Exit()
	syscall.Kill(pid, sig)
	h.Log.Await(t, 0, regexpEnd)
}

// awaitList waits until qt ls prints what matches want. A holder ends a little after its client.
func awaitList(t *testing.T, h *rig.Host, want string) (out []byte) {
	t.Helper()
	var err error
	for until := time.Now().Add(rig.Patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		out, err = h.QT("ls").CombinedOutput()
		if err == nil && regexp.MustCompile(want).Match(out) {
			return out
		}
	}
	t.Fatalf("qt ls: %v\n%s\nwant %s", err, out, want)
	return nil
}

// The client of a session whose holder is killed learns that soon: it comes back, and the daemon has seen the end.
func TestHolderKilled(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr)
	syscall.Kill(x.Holder(), syscall.SIGKILL)
	x.Expect("the session is gone: its holder was killed")
	if status := x.Exit(); status != 255 {
		t.Errorf("exit status %d, want 255", status)
	}
}

// A session whose holder was killed is listed as lost. qt attach prints what it showed last and the command that starts
// it again, which does so. qt kill removes what is left.
func TestLostSession(t *testing.T) {
	h := persistent(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Run("mkdir "+h.Path("here")+"; cd "+h.Path("here")+"; echo do''ne", "done")
	x.Run("for i in `seq 100`; do echo line$i; done; echo be''fore", "before")
	awaitRecord(t, h, "before")
	loseSession(t, h, x, syscall.SIGKILL)

	awaitList(t, h, " work +lost ")
	x = rig.Open(t, h.QT("attach", "work"))
	x.Expect(`line1\r\n(.*\r\n)*.*line100\r\n.*before`)
	x.Expect(`session work was lost after .*: its holder was killed; above is what it showed last, in .*/here\r\n`)
	x.Expect("qt kill .*work removes what is left; qt connect -t -s work .* starts it again")
	if status := x.Exit(); status != 255 {
		t.Errorf("exit status %d, want 255", status)
	}
	x = h.Shell(h.Addr, "-s", "work")
	x.Run("echo a''gain", "again")
	x.Send("exit 3\r")
	if status := x.Exit(); status != 3 {
		t.Errorf("exit status %d, want 3", status)
	}
	awaitList(t, h, "^ID.*\n.* work +lost .*\n$") // only that
	if out, err := h.QT("kill", "work").CombinedOutput(); err != nil {
		t.Errorf("qt kill: %v\n%s", err, out)
	}
	awaitList(t, h, "^ID.*\n$")
	if left, _ := filepath.Glob(h.Path("sessions/*")); left != nil {
		t.Errorf("left %q", left)
	}
}

// After a reboot, a session is shown as the system's SIGTERM has left it, with its command.
func TestRebootedSession(t *testing.T) {
	h := persistent(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Run("echo be''fore", "before")
	loseSession(t, h, x, syscall.SIGTERM)
	h.Stop(syscall.SIGKILL)
	reboot(t, h)
	h.Start()

	awaitList(t, h, " work +lost ")
	x = rig.Open(t, h.QT("attach")) // it is the only session
	x.Expect("before")
	x.Expect("the machine was rebooted")
	x.Expect(`qt connect -t -s work .* 'exec env PS1='.*' HISTFILE= sh' starts it again`)
	x.Exit()
}

// reboot makes a record that of an earlier run of the machine.
func reboot(t *testing.T, h *rig.Host) {
	t.Helper()
	files, err := filepath.Glob(h.Path("sessions/*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("records %q, %v; want one", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lost, err := wire.DecodeLost(b)
	if err != nil {
		t.Fatal(err)
	}
	if lost.Exited {
		t.Error("the session that the system has stopped counts as one that has exited")
	}
	lost.Boot = wire.BootMark{1}
	if b, err = wire.EncodeLost(lost); err == nil {
		err = os.WriteFile(files[0], b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
