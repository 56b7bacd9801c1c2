//go:build linux || darwin

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/screen"
)

// A peeked is the screen of a session as qt peek --json has it.
type peeked struct {
	Cols, Rows int
	Cursor     [2]int
	Screen     []struct{ Runs [][]string }
}

func peekAt(t *testing.T, h *rig.Host, name string) (p peeked, text []string) {
	t.Helper()
	out, err := h.Via(h.Addr, "peek", []string{"--json"}, name).Output()
	if err == nil {
		err = json.Unmarshal(out, &p)
	}
	if err != nil {
		t.Fatalf("peek: %v, %s", err, out)
	}
	for _, row := range p.Screen {
		line := ""
		for _, run := range row.Runs {
			line += run[0]
		}
		text = append(text, line)
	}
	return p, text
}

// columns returns the columns of a row from one up to another. Half of a wide character is a blank.
func columns(width int, text string, from, to int) (part string) {
	s := screen.New(width, 2, screen.Limits{})
	fmt.Fprint(s, text)
	for x := from; x < min(to, width); x++ {
		switch c := s.Row(0).Cell(x); {
		case c.Text == "", c.Width == 0 && x == from, c.Width == 2 && x == to-1:
			part += " "
		default:
			part += c.Text
		}
		if c := s.Row(0).Cell(x); c.Width == 2 && x < to-1 {
			x++
		}
	}
	return strings.TrimRight(part, " ")
}

var windowHint = regexp.MustCompile(`^(\d+)x(\d+)(?: from (\d+),(\d+))?`)

// showsSession returns how what a terminal of a size shows differs from the session's screen or, if it is
// drawn, from the part of that which its hint names.
func showsSession(t *testing.T, h *rig.Host, x *rig.Terminal, cols, rows int, drawn bool) string {
	t.Helper()
	p, want := peekAt(t, h, "work")
	s := screen.New(cols, rows, screen.Limits{})
	fmt.Fprint(s, x.Out.String())
	line := func(y int) string { return strings.TrimRight(s.Row(y).Text(), " ") }
	left, top, shown := 0, 0, min(rows, p.Rows)
	if drawn {
		if p.Cols > cols || p.Rows > rows {
			shown = min(shown, rows-1)
		}
		if shown < rows {
			hint := ""
			for y := shown; y < rows && hint == ""; y++ {
				hint = line(y)
			}
			m := windowHint.FindStringSubmatch(hint)
			if m == nil || m[1] != fmt.Sprint(p.Cols) || m[2] != fmt.Sprint(p.Rows) {
				return fmt.Sprintf("the hint is %q, the session has %dx%d", hint, p.Cols, p.Rows)
			}
			left, _ = strconv.Atoi(m[3])
			top, _ = strconv.Atoi(m[4])
		}
	}
	for y := range min(shown, p.Rows-top) {
		if text := columns(p.Cols, want[top+y], left, left+cols); line(y) != text {
			return fmt.Sprintf("row %d is %q, want %q of row %d", y, line(y), text, top+y)
		}
	}
	if cx, cy := s.Cursor(); cx != min(p.Cursor[0], p.Cols-1)-left && cx != p.Cursor[0]-left || cy != p.Cursor[1]-top {
		return fmt.Sprintf("the cursor is at %d, %d, want %d, %d", cx, cy, p.Cursor[0]-left, p.Cursor[1]-top)
	}
	return ""
}

func awaitSession(t *testing.T, why string, h *rig.Host, x *rig.Terminal, cols, rows int, drawn bool) {
	t.Helper()
	for until := time.Now().Add(rig.Patience); ; time.Sleep(50 * time.Millisecond) {
		diff := showsSession(t, h, x, cols, rows, drawn)
		if diff == "" {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%s: %s", why, diff)
		}
	}
}

// One writer owns the size of a session. A client with another size sees a window, and the one that takes the
// size sees the output itself.
func TestSizes(t *testing.T) {
	h := newHost(t)
	h.Start()
	first := h.Shell(h.Addr, "-s", "work") // 80x24
	first.Run("i=0; while [ $i -lt 30 ]; do echo \"row $i is a row that is wider than the small terminal\"; i=$((i+1)); done", "row 29")
	small := rig.OpenSized(t, h.Via(h.Addr, "attach", []string{"--share"}, "work"), 40, 12)
	first.Expect("shares this session and can type")
	awaitSession(t, "a smaller terminal", h, small, 40, 12, true)
	small.Send("stty size\r")
	first.Expect("24 80")
	awaitSession(t, "typed in the window", h, small, 40, 12, true)
	small.Send("echo 'a command that is longer than the window is wide, and then'\\''s still'")
	first.Expect("s still'")
	awaitSession(t, "the cursor is at the right", h, small, 40, 12, true)
	small.Send("\r")
	first.Expect(`still\r\n\$ `)

	if _, err := exec.LookPath("vim"); err == nil {
		lines := ""
		for i := range 100 {
			lines += fmt.Sprintf("line %d 漢字 of a file, %s\n", i, strings.Repeat("wide ", 15))
		}
		h.Write("file", lines)
		first.Send("LC_ALL=C.UTF-8 vim -u NONE -i NONE -N -c 'set nowrap ruler' " + h.Path("file") + "\r")
		first.Expect("line 22")
		awaitSession(t, "vim", h, small, 40, 12, true)
		small.Send("G$")
		first.Expect("Bot")
		awaitSession(t, "the end of the file", h, small, 40, 12, true)
		small.Send(":q!\r")
		awaitSession(t, "the shell after vim", h, small, 40, 12, true)
	}

	small.Send("\r~=")
	first.Expect(`the session has the size of \S+ now, 40x12 \(~= takes it\)`)
	small.Send("stty size\r")
	small.Expect("12 40")
	awaitSession(t, "taken by the small one", h, small, 40, 12, false)
	awaitSession(t, "the first, of another size", h, first, 80, 24, true)

	large := rig.OpenSized(t, h.Via(h.Addr, "attach", []string{"--share", "--size", "own"}, "work"), 120, 40)
	small.Expect(`the session has the size of \S+ now, 120x40 \(~= takes it\)`)
	large.Expect("shares this session and can type")
	large.Run(`printf '\033[H\033[Jcle''ared'; stty size`, `(?s)cleared.*40 120`) // the client may draw in between
	awaitSession(t, "the owner", h, large, 120, 40, false)
	awaitSession(t, "the small one", h, small, 40, 12, true)
	awaitSession(t, "the first", h, first, 80, 24, true)

	first.Send("\r~=")
	awaitSession(t, "the first takes the size", h, first, 80, 24, false)
	awaitSession(t, "the large one", h, large, 120, 40, true)
	first.Send("\r~.")
	if got := first.Exit(); got != 0 {
		t.Errorf("exit status %d", got)
	}
	large.Expect("the session has the size of this terminal now")
	large.Run(`printf '\033[H\033[Jcle''ared'; stty size`, `(?s)cleared.*40 120`) // the client may draw in between
	awaitSession(t, "the first has left", h, large, 120, 40, false)
	small.Send("\r~.")
	small.Expect("left; qt attach")
	if s := screen.New(40, 12, screen.Limits{}); true {
		fmt.Fprint(s, small.Out.String())
		if s.Alternate() || len(s.Undo()) > 0 {
			t.Errorf("the terminal of the small one is left with %q to undo", s.Undo())
		}
	}
	large.Send("exit 3\r")
	if got := large.Exit(); got != 3 {
		t.Errorf("exit status %d", got)
	}
}

// drawnAt is what qt peek --json says of when the shell has drawn its prompt.
var drawnAt = regexp.MustCompile(`"waits(_since)?":"[^"]*",`)

// A visitor takes the size and leaves, and nothing is printed but what the shell draws again: the screen is
// as before, cell for cell. What is printed in the visit joins its wrapped lines again.
func TestVisit(t *testing.T) {
	for _, shell := range []string{"sh", "bash --norc --noprofile"} {
		t.Run(shell, func(t *testing.T) {
			program, _, _ := strings.Cut(shell, " ")
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			h := newHost(t)
			h.Start()
			x := rig.Open(t, h.Via(h.Addr, "connect", []string{"-t", "-s", "work"}, "exec env TERM=xterm-256color PS1='$ ' HISTFILE= "+shell))
			x.Expect(`\$ `)
			x.Run(`seq 100; echo `+strings.Repeat("wrapped ", 20)+`; printf '\033[31;42mcolours\033[m\n'; echo en''d`, "end")
			peek := func() string {
				t.Helper()
				out, err := h.Via(h.Addr, "peek", []string{"--json"}, "work").Output()
				if err != nil {
					t.Fatal(err)
				}
				return drawnAt.ReplaceAllString(string(out), "")
			}
			before := peek()
			for _, size := range [][2]uint16{{120, 40}, {50, 12}} {
				y := rig.OpenSized(t, h.Via(h.Addr, "attach", []string{"--share", "--size", "own"}, "work"), size[0], size[1])
				y.Expect(`\$ `)
				awaitSession(t, "the visitor", h, y, int(size[0]), int(size[1]), false)
				y.Send("~.")
				y.Expect("left; qt attach")
				x.Expect("the session has the size of this terminal now")
				for until := time.Now().Add(rig.Patience); peek() != before; time.Sleep(50 * time.Millisecond) {
					if time.Now().After(until) {
						t.Fatalf("after a visit of %v the screen is\n%s\nwant\n%s", size, peek(), before)
					}
				}
			}
		})
	}
}
