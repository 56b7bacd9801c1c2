//go:build linux || darwin

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/holder/persist"
)

// persistent returns a host whose sessions are kept on disk.
func persistent(t *testing.T, mode string) *rig.Host {
	h := newHost(t)
	h.Settings["persist"] = `"` + mode + `"`
	h.Settings["persist_dir"] = `"` + h.Path("sessions") + `"`
	return h
}

// awaitRecord waits until a file of a record has a text.
func awaitRecord(t *testing.T, h *rig.Host, text string) {
	t.Helper()
	for until := time.Now().Add(rig.Patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		files, _ := filepath.Glob(h.Path("sessions/*/[0-9]*"))
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(text)) {
				return
			}
		}
	}
	t.Fatalf("no record has %q", text)
}

// regexpEnd matches what the daemon logs when a session is over.
var regexpEnd = regexp.MustCompile("event=end")

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

// A session whose holder was killed is listed as lost. Who attaches to it sees its last screen, and may
// have its command started again, in its directory.
func TestLostSession(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"screen", "log"} {
		t.Run(mode, func(t *testing.T) {
			h := persistent(t, mode)
			h.Start()
			x := h.Shell(h.Addr, "-s", "work")
			x.Run("mkdir "+h.Path("here")+"; cd "+h.Path("here")+"; echo do''ne", "done")
			x.Run("echo be''fore", "before")
			awaitRecord(t, h, "before")
			loseSession(t, h, x, syscall.SIGKILL)

			awaitList(t, h, " work +lost ")
			x = rig.Open(t, h.QT("attach", "work"))
			x.Expect(`\[y/N\] `)
			x.Send("~.") // its holder lives, and waits for the answer
			x.Exit()
			x = rig.Open(t, h.QT("attach", "work"))
			x.Expect("before")
			x.Expect("The session was lost after .*: its holder was killed")
			x.Expect("Start .* again in .*/here.* \\[y/N\\] ")
			x.Send("n\r")
			x.Exit()
			awaitList(t, h, " work +lost ") // its holder ends after the client

			x = rig.Open(t, h.QT("attach", "work"))
			x.Expect("before")
			x.Expect(`\[y/N\] `)
			x.Send("y\r")
			x.Expect(`\$ `)
			x.Run("pwd", h.Path("here"))
			awaitRecord(t, h, "pwd")
			x.Send("exit 3\r")
			if status := x.Exit(); status != 3 {
				t.Errorf("exit status %d, want 3", status)
			}
			awaitList(t, h, "^ID.*\n$")
		})
	}
}

// After a reboot, a session is shown as the system's SIGTERM has left it. Its record is encrypted: with another key,
// a listing says so. qt kill removes the record.
func TestRebootedSession(t *testing.T) {
	h := persistent(t, "screen")
	h.Settings["persist_key"] = `"` + h.Path("key") + `"`
	key := strings.Repeat("k", 32)
	h.Settings["recording"] = `"require"`
	h.Settings["recording_dir"] = `"` + h.Path("recordings") + `"`
	h.Write("key", key)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Run("echo be''fore", "before")
	loseSession(t, h, x, syscall.SIGTERM)
	h.Stop(syscall.SIGKILL)
	reboot(t, h, []byte(key))
	h.Start()

	awaitList(t, h, " work +lost ")
	x = rig.Open(t, h.QT("attach")) // it is the only session
	x.Expect("before")
	x.Expect("the machine was rebooted")
	x.Expect(`\[y/N\] `)
	if files, _ := filepath.Glob(h.Path("recordings/*-work-*.cast")); len(files) != 2 {
		t.Errorf("recordings %q, want another one of the session that is shown", files)
	}
	x.Send("\r")
	x.Exit()

	h.Write("key", strings.Repeat("K", 32))
	out := awaitList(t, h, "record not readable: it was encrypted with another key than that of persist_key")
	id := string(regexp.MustCompile(`(?m)^[0-9a-f]{8}`).Find(out))
	x = rig.Open(t, h.QT("attach", id))
	x.Expect("cannot be read: it was encrypted with another key")
	if status := x.Exit(); status != 255 {
		t.Errorf("exit status %d of an attach with another key, want 255", status)
	}
	h.Write("key", key)
	x = rig.Open(t, h.QT("attach", "work"))
	x.Expect(`\[y/N\] `)
	x.Send("~.") // its holder removes the record
	x.Exit()
	if out, err := h.QT("kill", "work").CombinedOutput(); err != nil {
		t.Errorf("qt kill: %v\n%s", err, out)
	}
	for until := time.Now().Add(rig.Patience); ; time.Sleep(20 * time.Millisecond) { // the holder ends a little later
		left, _ := filepath.Glob(h.Path("sessions/*"))
		if left == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("left %q", left)
		}
	}
}

// reboot makes a record that of an earlier run of the machine.
func reboot(t *testing.T, h *rig.Host, key []byte) {
	t.Helper()
	root, err := os.OpenRoot(h.Path("sessions"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := persist.New(root)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ids, err := store.IDs()
	if err != nil || len(ids) != 1 {
		t.Fatalf("records %q, %v; want one", ids, err)
	}
	r, err := store.Take(ids[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := r.Load(key)
	if err != nil {
		t.Fatal(err)
	}
	if c.Facts.Exited {
		t.Error("the session that the system has stopped counts as one that has exited")
	}
	c.Facts.Boot = []byte("another")
	if err := r.Begin(&persist.State{Facts: c.Facts, Screen: c.Screen}, key, false, false); err != nil {
		t.Fatal(err)
	}
}
