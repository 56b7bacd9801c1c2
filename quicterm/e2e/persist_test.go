//go:build linux || darwin

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
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

// loseSession kills the holder of a session that is attached, and waits until that is gone.
func loseSession(t *testing.T, h *rig.Host, x *rig.Terminal) {
	t.Helper()
	x.Send("echo hol''der $PPID\r")
	pid, err := strconv.Atoi(x.Expect("holder ([0-9]+)\r")[1])
	if err != nil {
		t.Fatal(err)
	}
	x.Expect(`\$ `)
	x.Send("~d")
	x.Exit()
	syscall.Kill(pid, syscall.SIGKILL)
	h.Log.Await(t, 0, regexpEnd)
}

// A session whose holder was killed is listed as lost. Who attaches to it sees its last screen, and may
// have its command started again, in its directory.
func TestLostSession(t *testing.T) {
	for _, mode := range []string{"screen", "log"} {
		t.Run(mode, func(t *testing.T) {
			h := persistent(t, mode)
			h.Start()
			x := h.Shell(h.Addr, "-s", "work")
			x.Run("mkdir "+h.Path("here")+"; cd "+h.Path("here")+"; echo do''ne", "done")
			x.Run("echo be''fore", "before")
			awaitRecord(t, h, "before")
			loseSession(t, h, x)

			out, err := h.QT("ls").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "work  lost ") {
				t.Fatalf("qt ls: %v\n%s", err, out)
			}
			x = rig.Open(t, h.QT("attach", "work"))
			x.Expect("before")
			x.Expect("The session was lost after .*: its holder was killed")
			x.Expect("Start .* again in .*/here.* \\[y/N\\] ")
			x.Send("n\r")
			x.Exit()

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
			out, err = h.QT("ls").CombinedOutput()
			if err != nil || strings.Contains(string(out), "work") {
				t.Errorf("qt ls after the end: %v\n%s", err, out)
			}
		})
	}
}
