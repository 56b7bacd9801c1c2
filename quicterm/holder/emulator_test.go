//go:build linux || darwin

package holder

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// failAt makes the screen of a holder fail at some output.
func (w *world) failAt(at func(b []byte) bool) {
	w.locked(func(h *Holder) {
		h.emulator.write = func(s *screen.Screen, b []byte) (int, error) {
			if at(b) {
				panic("this is a test")
			}
			return s.Write(b)
		}
	})
}

// drawn returns the text of the session's screen, when all output is drawn.
func (w *world) drawn() (text string) {
	w.t.Helper()
	time.Sleep(drawDelay)
	synctest.Wait()
	w.locked(func(h *Holder) {
		if n := h.emulator.undrawnLocked(); n > 0 || h.emulator.drawing {
			w.t.Errorf("%d bytes are not drawn", n)
		}
		text = textOf(h.emulator.screen)
	})
	return text
}

// textOf returns the lines of a screen, without blanks at the end.
func textOf(s *screen.Screen) string {
	var b strings.Builder
	_, rows := s.Size()
	for y := range rows {
		var line strings.Builder
		row := s.Row(y)
		for x := range row.Len() {
			if text := row.Cell(x).Text; text != "" {
				line.WriteString(text)
			} else {
				line.WriteByte(' ')
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

var usual = wire.Size{Cols: 80, Rows: 24}

// The holder knows what is on the screen, whatever the ring has kept.
func TestScreenIsKnown(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 1 << 20}, func(w *world) {
		w.print("\x1b[2J\x1b[H" + lines(5<<20) + "\x1b[2J\x1b[Hhello ")
		w.print("\x1b[1;3Hy \x1b[3;5Hthere")
		if got := w.drawn(); got != "hey o\n\n    there" {
			t.Errorf("the screen shows %q", got)
		}
		if s, _ := w.state(); s.Memory < 1<<19 {
			t.Errorf("the session takes %d bytes", s.Memory)
		}
	})
}

// A change of size is drawn in its place.
func TestScreenResizes(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		a := w.attach("a@x")
		w.print("before")
		small := wire.Size{Cols: 10, Rows: 3}
		a.send(wire.Resize, string(small.Append(nil)))
		w.print("\x1b[Hbehind it: wraps")
		if got := w.drawn(); got != "behind it:\n wraps" {
			t.Errorf("the screen shows %q", got)
		}
	})
}

// Output waits while much of it is not drawn, so that none is left out.
func TestOutputWaitsForEmulator(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 4 << 20}, func(w *world) {
		open := make(chan struct{})
		w.failAt(func([]byte) bool { <-open; return false })
		done := w.printing(lines(5 << 20))
		if time.Sleep(time.Hour); done() {
			t.Error("the program does not wait")
		}
		w.locked(func(h *Holder) {
			if n := h.ring.Memory(); h.ring.First() != 1 || n > 3<<20 {
				t.Errorf("the ring takes %d bytes, and begins with frame %d", n, h.ring.First())
			}
		})
		close(open)
		if time.Sleep(time.Second); !done() {
			t.Error("the program still waits")
		}
	})
}

// A fault of the screen costs the session nothing. The screen is drawn again from the ring,
// without the output at which it has failed.
func TestScreenFails(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.failAt(func(b []byte) bool { return bytes.Contains(b, []byte("fault")) })
		a := w.attach("a@x")
		w.print("one ")
		w.print("fault ")
		w.print("two")
		if got := w.drawn(); got != "one two" {
			t.Errorf("the screen shows %q", got)
		}
		a.awaitOutput("one fault two")
		if n := len(w.log.lines("screen of the session has failed", "this is a test")); n != 1 {
			t.Errorf("%d lines in the log, want 1", n)
		}
		for range 100 {
			w.print("fault")
			w.drawn()
		}
		w.print("\x1b[2J\x1b[Hin the end")
		if got := w.drawn(); got != "in the end" {
			t.Errorf("after many faults the screen shows %q", got)
		}
		if n := len(w.log.lines("screen of the session has failed")); n != maxRedrawn {
			t.Errorf("%d lines in the log, want %d", n, maxRedrawn)
		}
	})
}

// Output without end in a control sequence, and with huge counts, takes little memory and time. Most
// takes a scrollback in which each character has a colour of its own.
func TestHostileOutput(t *testing.T) {
	for name, output := range map[string]string{
		"osc":     "\x1b]0;" + strings.Repeat("x", 4<<20),
		"dcs":     "\x1bP" + strings.Repeat("x", 4<<20),
		"params":  "\x1b[" + strings.Repeat("9;", 2<<20),
		"repeat":  strings.Repeat("x\x1b[999999999b", 3_000),
		"scroll":  strings.Repeat("\x1b[999999999S\x1b[999999999T\x1b[999999999L", 10_000),
		"erase":   strings.Repeat("\x1b[999999999X\x1b[999999999@\x1b[999999999P", 10_000),
		"move":    strings.Repeat("\x1b[999999999B\x1b[999999999C\n", 10_000),
		"titles":  strings.Repeat("\x1b[22t\x1b]0;"+strings.Repeat("t", 4000)+"\x07", 1000),
		"styles":  manyStyles(100_000),
		"links":   strings.Repeat("\x1b]8;;http://"+strings.Repeat("l", 2000)+"\x07x", 1000),
		"accents": strings.Repeat("e"+strings.Repeat("\u0301", 1000), 1000),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 1 << 20}, func(w *world) {
				if !w.printing(output)() {
					time.Sleep(time.Second)
				}
				w.drawn()
				w.locked(func(h *Holder) {
					if e := &h.emulator; e.memory > 12<<20 || e.faults > 0 {
						t.Errorf("the screen takes %d bytes, and has failed %d times", e.memory, e.faults)
					}
				})
				if n := len(w.log.lines("failed")); n > 0 {
					t.Errorf("%d lines in the log", n)
				}
			})
		})
	}
}

// manyStyles returns characters of n colours.
func manyStyles(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("\x1b[38;2;" + strconv.Itoa(i>>16) + ";" + strconv.Itoa(i>>8&255) + ";" + strconv.Itoa(i&255) + "mx")
	}
	return b.String()
}
