package screen

import "github.com/quicterm/quicterm/quicterm/screen/marks"

// mark obeys a mark of the shell. On the alternate screen it is one of another shell, which a program shows.
func (s *Screen) mark(m marks.Mark) {
	if m.Kind != 0 && !s.Alternate() {
		if s.listener != nil {
			s.listener.Mark(m)
		}
		s.typing(m)
		s.marked = m.Kind
		s.buf.row(s.y).mark.Add(m, s.x)
	}
}

// InputZone reports whether the shell's marks say that the person edits a command now. Without any such mark known is
// false.
func (s *Screen) InputZone() (in, known bool) { return s.marked == marks.Input, s.marked != 0 }

// Directory returns the host and the directory that the shell has told last. Both may be empty.
func (s *Screen) Directory() (host, path string) { return marks.Path(s.directory) }

// DirectoryURI is Directory as OSC 7 gives it.
func (s *Screen) DirectoryURI() string { return s.directory }

// Commands returns the commands that the shell's marks tell of, with rows of the main screen as Row counts them.
func (s *Screen) Commands() []marks.Command {
	at := s.mainCursor()
	return marks.Commands(func(y int) marks.Row {
		if y >= 0 {
			return s.main.row(y).mark
		}
		b, i := s.history.find(s.history.lines + y)
		return b.rows[i].mark
	}, -s.history.lines, s.rows, s.marked, at.X, at.Y)
}

func (s *Screen) mainCursor() Place {
	if s.Alternate() {
		return Place{s.main.x, s.main.y}
	}
	return Place{s.x, s.y}
}

// MainText returns the lines of the main screen and the scrollback from a row up to a column of another one, such as
// the output of one of the Commands: a line in each Row. After output that ends with a line's end, the last one is empty.
func (s *Screen) MainText(first, last, column int) []Row {
	var lines []Row
	var line []row
	for y := first; y <= last; y++ {
		r := s.rowOf(y)
		if len(line) > 0 && !r.wrapped {
			lines = append(lines, Row{s, row{cells: text(line, s.cols)}})
			line = line[:0]
		}
		if y == last {
			r.cells = r.cells[:min(column, s.cols)]
		}
		line = append(line, r)
	}
	return append(lines, Row{s, row{cells: text(line, s.cols)}})
}

// input writes the mark of a command that a person edits, which moves the cursor.
func (r *renderer) input() {
	if in, _ := r.s.InputZone(); in {
		at := r.s.mainCursor()
		r.moveTo(min(at.X, r.s.cols-1), at.Y)
		r.add("\x1b]133;B\x1b\\")
	}
}
