package screen

import (
	"fmt"
	"strings"
)

// A Dump is what a Screen shows, for tests and people, as JSON.
type Dump struct {
	Cols      int       `json:"cols"`
	Rows      int       `json:"rows"`
	Cursor    [2]int    `json:"cursor"`
	Alternate bool      `json:"alternate"`
	Title     string    `json:"title"`
	Modes     DumpModes `json:"modes"`
	// Scrollback and Screen are of the screen that is shown: the alternate one has no scrollback.
	Scrollback []DumpRow `json:"scrollback"`
	Screen     []DumpRow `json:"screen"`
	Main       []DumpRow `json:"main,omitempty"` // while the alternate screen is shown
}

// DumpModes are modes of a terminal.
type DumpModes struct {
	ApplicationCursorKeys bool   `json:"applicationCursorKeysMode"`
	ApplicationKeypad     bool   `json:"applicationKeypadMode"`
	BracketedPaste        bool   `json:"bracketedPasteMode"`
	Insert                bool   `json:"insertMode"`
	MouseTracking         string `json:"mouseTrackingMode"`
	Origin                bool   `json:"originMode"`
	ReverseWraparound     bool   `json:"reverseWraparoundMode"`
	SendFocus             bool   `json:"sendFocusMode"`
	SynchronizedOutput    bool   `json:"synchronizedOutputMode"`
	Wraparound            bool   `json:"wraparoundMode"`
}

// A DumpRow is a row. Default blanks at its end are left out.
type DumpRow struct {
	Runs []DumpRun `json:"runs"`
	Wrap bool      `json:"wrap"` // the row continues the one above
}

// A DumpRun is text of one style: the text, the colour, the background and the attributes. Colours are
// empty by default, pN for the palette's N, or #rrggbb. Attributes are letters: B bold, D dim,
// I italic, U underline, K blink, R inverse, H hidden, S strike.
type DumpRun [4]string

// Dump returns what the Screen shows.
func (s *Screen) Dump() Dump {
	mouse := map[int]string{0: "none", 9: "x10", 1000: "vt200", 1002: "drag", 1003: "any"}
	on := func(m modes) bool { return s.modes&m != 0 }
	d := Dump{
		Cols: s.cols, Rows: s.rows, Cursor: [2]int{s.x, s.y}, Alternate: s.Alternate(), Title: s.title,
		Modes: DumpModes{
			on(modeCursorKeys), on(modeKeypad), on(modePaste), on(modeInsert), mouse[s.mouse.tracking],
			on(modeOrigin), on(modeReverseWrap), on(modeFocus), on(modeSync), on(modeWrap),
		},
		Scrollback: []DumpRow{},
	}
	for _, r := range s.Rows(s.history.lines) {
		d.Screen = append(d.Screen, r.dump(s.cols))
	}
	above := len(d.Screen) - s.rows
	d.Scrollback, d.Screen = append(d.Scrollback, d.Screen[:above]...), d.Screen[above:]
	for y := 0; d.Alternate && y < s.rows; y++ {
		d.Main = append(d.Main, Row{s, *s.main.row(y)}.dump(s.cols))
	}
	return d
}

func (r Row) dump(cols int) DumpRow {
	runs := []DumpRun{}
	for x := range min(cols, r.Len()) {
		c := r.Cell(x)
		if c.Width == 0 {
			continue
		}
		if c.Text == "" {
			c.Text = " "
		}
		run := DumpRun{c.Text, c.Style.Fg.dump(), c.Style.Bg.dump(), c.Style.dump()}
		if n := len(runs); n > 0 && [3]string(runs[n-1][1:]) == [3]string(run[1:]) {
			runs[n-1][0] += run[0]
		} else {
			runs = append(runs, run)
		}
	}
	if n := len(runs); n > 0 && [3]string(runs[n-1][1:]) == [3]string{} {
		if runs[n-1][0] = strings.TrimRight(runs[n-1][0], " "); runs[n-1][0] == "" {
			runs = runs[:n-1]
		}
	}
	return DumpRow{runs, r.Wrapped()}
}

func (c Color) dump() string {
	if i, ok := c.Palette(); ok {
		return fmt.Sprintf("p%d", i)
	}
	if r, g, b, ok := c.RGB(); ok {
		return fmt.Sprintf("#%02x%02x%02x", r, g, b)
	}
	return ""
}

func (s Style) dump() string {
	letters := ""
	for i, on := range []bool{
		s.Attributes&Bold != 0, s.Attributes&Dim != 0, s.Attributes&Italic != 0, s.Underline != 0 || s.Link != 0,
		s.Attributes&Blink != 0, s.Attributes&Inverse != 0, s.Attributes&Hidden != 0, s.Attributes&Strike != 0,
	} {
		if on {
			letters += "BDIUKRHS"[i : i+1]
		}
	}
	return letters
}
