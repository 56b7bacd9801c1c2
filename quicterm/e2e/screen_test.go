//go:build linux || darwin

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/screen"
)

// editor is a program that draws over the whole screen, prints far more than a small ring
// holds when it is told to, and then shows something else.
const editor = `printf '\033[?1049h\033[?25l\033[?2004h\033[2;20r\033[31mbegun'
read x < go
seq 1000000 1300000
printf '\033[r\033[2J\033[H\033[1;32mtop\033[24;70Hbottom\033[5;20r\033[12;30H\033[7mfin''al\033[m'
echo > done
read x < go
printf '\033[Hthen'
sleep 600
`

// edited is what the editor shows at the end.
const edited = "\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[2J\x1b[H\x1b[1;32mtop\x1b[24;70Hbottom\x1b[12;30H\x1b[7mfinal\x1b[m\x1b[Hthen"

// wantScreen compares what a terminal shows.
func wantScreen(t *testing.T, x *rig.Terminal, output string) {
	t.Helper()
	got, want := screen.New(80, 24, screen.Limits{}), screen.New(80, 24, screen.Limits{})
	fmt.Fprint(got, x.Out.String())
	fmt.Fprint(want, output)
	for y := range 24 {
		for x := range 80 {
			if g, w := got.Row(y).Cell(x), want.Row(y).Cell(x); g != w {
				t.Errorf("column %d of row %d shows %+v, want %+v", x, y, g, w)
				return
			}
		}
	}
	gotX, gotY := got.Cursor()
	wantX, wantY := want.Cursor()
	if gotX != wantX || gotY != wantY || got.Alternate() != want.Alternate() {
		t.Errorf("cursor at %d, %d, alternate screen %v", gotX, gotY, got.Alternate())
	}
}

// tell runs a command of the session's directory beside the session.
func tell(t *testing.T, h *rig.Host, command string) {
	t.Helper()
	if out, err := h.QT("connect", "cd "+h.Dir+"; "+command).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The ring overflows while a client has no contact. Then one line says what is missing, and
// the screen is right. So it is for a client that attaches, and nothing is said to be lost.
func TestScreenAfterOverflow(t *testing.T) {
	h := newHost(t)
	h.Settings["buffer_size"] = `"1MiB"`
	h.Start()
	p := h.Proxy(netem.Config{})
	x := h.Shell(p.Addr(), "-s", "editor")
	x.Run("cd "+h.Dir+"; mkfifo go done", "mkfifo")
	h.Write("editor", editor)
	x.Send(". ./editor\r")
	x.Expect("begun")
	p.Set(netem.Config{Down: true})
	h.Stop(syscall.SIGKILL) // or the program would wait for the client
	h.Start()
	tell(t, h, "echo > go; cat done")
	p.Set(netem.Config{})
	x.Expect(`\[qt: \d+ bytes of output lost, the server has kept no more \(frames \d+ to \d+\)\]\r\n`)
	x.Expect("final")

	y := rig.Open(t, h.QT("attach", "--share", "editor"))
	y.Expect("final")
	tell(t, h, "echo > go")
	for _, x := range []*rig.Terminal{x, y} {
		x.Expect("then")
		wantScreen(t, x, edited)
	}
	if out := y.Out.String(); strings.Contains(out, "lost") {
		t.Errorf("to the client that has attached: %q", out)
	}
}
