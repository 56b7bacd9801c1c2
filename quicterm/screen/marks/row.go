package marks

import "strconv"

// A Row is what a shell has said at a row of a terminal. In a row, output begins before a command ends, and that
// before a prompt begins.
type Row struct {
	flags  flags
	status uint8  // with hasStatus
	column uint16 // with ends: where the command has ended
}

type flags uint8

const (
	beginsPrompt flags = 1 << iota
	beginsOutput
	ends
	hasStatus
)

// Add adds a mark with the cursor in a column.
func (r *Row) Add(m Mark, column int) {
	switch {
	case m.Kind == Prompt:
		r.flags |= beginsPrompt
	case m.Kind == Output:
		r.flags |= beginsOutput
	case m.Kind == End && r.flags&ends == 0: // a second one is of another hook of the shell
		r.flags |= ends
		r.column = uint16(column)
		if m.Status >= 0 {
			r.flags |= hasStatus
			r.status = uint8(m.Status)
		}
	}
}

// End returns the column in which a command has ended.
func (r Row) End() (column int, known bool) { return int(r.column), r.flags&ends != 0 }

// AppendBegin appends the marks for the beginning of the row, with the cursor in a column.
func (r Row) AppendBegin(b []byte, column int) []byte {
	if r.flags&beginsOutput != 0 {
		b = append(b, "\x1b]133;C\x1b\\"...)
	}
	if r.flags&(beginsPrompt|ends) == beginsPrompt {
		b = appendPrompt(b, column)
	}
	return b
}

// appendPrompt appends the mark of a prompt that begins in a column. At A, some terminals begin a new line unless that
// is the first one.
func appendPrompt(b []byte, column int) []byte {
	if column == 0 {
		return append(b, "\x1b]133;A\x1b\\"...)
	}
	return append(b, "\x1b]133;P;k=i\x1b\\"...)
}

// AppendEnd appends the marks for the column of End.
func (r Row) AppendEnd(b []byte) []byte {
	b = append(b, "\x1b]133;D"...)
	if r.flags&hasStatus != 0 {
		b = strconv.AppendUint(append(b, ';'), uint64(r.status), 10)
	}
	b = append(b, "\x1b\\"...)
	if r.flags&beginsPrompt != 0 {
		b = appendPrompt(b, int(r.column))
	}
	return b
}

// MoveTo moves the marks to the n rows of a line that was wrapped anew into columns. Their row began at a character of
// the line.
func (r Row) MoveTo(row func(y int) *Row, n, cols, at int) {
	y := min(at/cols, n-1)
	row(y).flags |= r.flags & beginsOutput
	if r.flags&ends != 0 {
		at += int(r.column)
		y = min(at/cols, n-1)
		row(y).status, row(y).column = r.status, uint16(min(at-y*cols, cols))
	}
	row(y).flags |= r.flags &^ beginsOutput
}

// A Command is one that the marks tell of.
type Command struct {
	Prompt  int // the row in which its prompt begins; Output if that is not known
	Output  int // the row in which its output begins
	End     int // the row in which it has ended, or of the cursor while it runs
	Column  int // the column there
	Status  int // exit status, -1 if that is not known
	Running bool
}

// Commands returns the commands that were run and whose beginning is known, the oldest first. at returns what was said
// at each row from first on, before behind. last was the last Kind, and the cursor is at x, y.
func Commands(at func(y int) Row, first, behind int, last Kind, x, y int) []Command {
	var list []Command
	next := Command{Prompt: behind}
	running := false
	end := func(y, column, status int) {
		if running {
			c := &list[len(list)-1]
			c.End, c.Column, c.Status = y, column, status
		}
		running = false
	}
	for y := first; y < behind; y++ {
		r := at(y)
		if r.flags&beginsOutput != 0 {
			end(y, 0, -1)
			next.Output, next.Prompt = y, min(next.Prompt, y)
			list = append(list, next)
			next.Prompt, running = behind, true
		}
		if r.flags&ends != 0 {
			status := -1
			if r.flags&hasStatus != 0 {
				status = int(r.status)
			}
			end(y, int(r.column), status)
		}
		if r.flags&beginsPrompt != 0 {
			end(y, 0, -1)
			next.Prompt = y
		}
	}
	if running {
		end(y, x, -1)
		list[len(list)-1].Running = last == Output
	}
	return list
}
