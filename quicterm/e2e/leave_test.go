//go:build linux || darwin

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// stopped opens a session whose program does not read its input, and pastes 20 MB, more than
// the session keeps.
func stopped(t *testing.T, h *rig.Host) *rig.Terminal {
	t.Helper()
	x := h.Shell(h.Addr, "-s", "stopped")
	x.Send("stty -echo; echo rea''dy; exec sleep 600\r")
	x.Expect("ready")
	pasted := make(chan error, 1)
	go func() {
		_, err := x.TTY.WriteString(strings.Repeat(strings.Repeat("x", 99)+"\r", 200_000))
		pasted <- err
	}()
	select {
	case err := <-pasted:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(3 * rig.Patience):
		t.Fatal("the client does not read a paste that the program does not read")
	}
	return x
}

// All escapes work at once while 20 MB of input wait for a stopped program.
func TestEscapesOfStoppedProgram(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := stopped(t, h)
	x.Send("~?")
	x.Expect("the session continues")
	awaitLive(x, "stopped")
	x.Send("~.")
	x.Expect("qt: left; .*\r\n")
	x.Expect("qt: the last input did not reach the server and is lost\r\n") // of a client that leaves before the program has it
	if got := x.Exit(); got != 0 {
		t.Errorf("exit status after leaving: %d, want 0", got)
	}
}

// fullScreen is what a full-screen program sends at its start. On the alternate screen it
// sets a scroll region, hides the cursor, and changes colours, line drawing, keys, mouse,
// paste and title.
const fullScreen = `\033[?1049h\033[22;0;0t\033]2;editor\007\033[2;20r\033[?25l\033[1;37;44m\033(0\033[?1h\033=\033[?1000;1006h\033[?2004h\033[10;10Hdrawn`

// undone is what the client sends when it leaves such a program: the screen first, then
// everything that the program has set, then an empty line for the message.
const undone = `\x1b\[\?1049l\x1b7\x1b\[r\x1b8\x1b\[\?25h\x1b\[m\x1b\(B\x0f\x1b\[\?1l\x1b>` +
	`\x1b\[\?1000l\x1b\[\?1006l\x1b\[\?2004l\x1b\[23;0t\x1b\[23;0t(\r\n)?\x1b\[J`

// A client that detaches from a full-screen program, or is displaced there, leaves a clean
// terminal before its message.
func TestLeaveFullScreenProgram(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "editor")
	x.Send("printf '" + fullScreen + "'; sleep 600\r")
	x.Expect(`\x1b\[10;10Hdrawn`)
	x.Send("\r~.")
	x.Expect(undone + "qt: left; ")
	x.Exit()

	x = rig.Open(t, h.QT("attach", "editor"))
	x.Expect(`\x1b\]2;editor`)
	rig.Open(t, h.QT("attach", "editor"))
	x.Expect(undone + "qt: the session was taken over by ")
	x.Exit()
}

// A client whose session is killed says by whom.
func TestKilled(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "mine")
	if out, err := h.QT("kill", "mine").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	x.Expect(`\r\n(\x1b\[J)?qt: session mine on 127.0.0.1 was killed by .*@127.0.0.1, at [0-9:]+\r\n`)
	if got := x.Exit(); got != 129 {
		t.Errorf("exit status %d, want 129", got)
	}
}
