package screen

import (
	"strings"

	"github.com/quicterm/quicterm/quicterm/screen/marks"
)

const (
	// maxTyped bounds the rows of a command line: of one with more nothing is known. maxLine bounds its bytes.
	maxTyped = 24
	maxLine  = 1 << 10
)

// Typed is what the person has typed at the shell's prompts, by its marks.
type typed struct {
	line    uint64 // the line of the main screen in which a command is edited, or 0
	cells   int    // of that line, before the command
	told    string // the command as the shell has told it itself
	command string // the one that runs
	runs    bool
	ended   Ended
}

// Ended is the command that has ended last on a Screen. A Snapshot has nothing of it.
type Ended struct {
	Command string // what was between the marks; empty if that is not known
	Status  int    // exit status, -1 if that is not known
	Count   int    // how many have ended; 0 if none has
}

// Ended returns the command that has ended last.
func (s *Screen) Ended() Ended { return s.typed.ended }

// typing follows the marks of the main screen.
func (s *Screen) typing(m marks.Mark) {
	t := &s.typed
	switch m.Kind {
	case marks.Input:
		t.line, t.cells, t.told = s.main.row(s.y).line, min(s.x, s.cols), ""
		for y := s.y - 1; y >= 0 && s.main.row(y).line == t.line; y-- {
			t.cells += s.cols
		}
	case marks.Output:
		if t.command = t.told; t.command == "" {
			t.command = s.edited()
		}
		t.line, t.told, t.runs = 0, "", true
	case marks.End, marks.Prompt: // some shells mark no end
		if t.runs {
			t.runs, t.ended = false, Ended{t.command, m.Status, t.ended.Count + 1}
		}
	}
}

// edited returns the text of the command that was edited, up to the cursor.
func (s *Screen) edited() string {
	t, top := &s.typed, max(-s.history.lines, s.y-maxTyped)
	first := s.y
	for first >= top && s.rowOf(first).line != t.line {
		first--
	}
	if first < top || t.line == 0 {
		return ""
	}
	for first > top && s.rowOf(first).wrapped {
		first--
	}
	if s.rowOf(first).wrapped {
		return "" // it begins above
	}
	var b strings.Builder
	for i, line := range s.MainText(first, s.y, s.x) {
		if i == 0 {
			line.r.cells = line.r.cells[min(t.cells, len(line.r.cells)):]
		} else {
			b.WriteByte('\n')
		}
		b.WriteString(line.Text())
	}
	return bounded(strings.TrimSpace(b.String()))
}

// bounded returns what is kept of a command line.
func bounded(line string) string { return strings.ToValidUTF8(line[:min(len(line), maxLine)], "") }
