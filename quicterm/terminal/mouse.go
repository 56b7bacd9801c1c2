package terminal

import "strconv"

// A mouseShift says where a window is on a session's screen.
type mouseShift struct {
	x, y       int // what column and row the window begins with
	cols, rows int // of the screen
}

// A mouseFilter moves the places in mouse reports from a window to the session's screen. A report has the
// form of SGR: ESC [ < button ; column ; row M, or m at the end. It may come in pieces, and nothing but the
// numbers of a report is held back.
type mouseFilter struct {
	state  int    // bytes of mousePrefix that came, and then fields
	digits []byte // of the column or the row
}

const (
	mousePrefix = "\x1b[<"
	mouseButton = len(mousePrefix)
	mouseColumn = mouseButton + 1
	mouseRow    = mouseButton + 2

	// maxMouseDigits bounds the digits of a number in a report: terminals have fewer columns.
	maxMouseDigits = 5
)

// move returns typed bytes for the session.
func (f *mouseFilter) move(typed []byte, shift mouseShift) (moved []byte) {
	moved = make([]byte, 0, len(typed)+2*maxMouseDigits)
	for _, c := range typed {
		switch {
		case f.state >= mouseColumn && c >= '0' && c <= '9' && len(f.digits) < maxMouseDigits:
			f.digits = append(f.digits, c)
			continue
		case f.state == mouseColumn && c == ';':
			moved = f.place(moved, shift.x, shift.cols)
			f.state = mouseRow
		case f.state == mouseRow && (c == 'M' || c == 'm'):
			moved = f.place(moved, shift.y, shift.rows)
			f.state = 0
		case f.state == mouseButton && c == ';':
			f.state = mouseColumn
		case f.state == mouseButton && c >= '0' && c <= '9':
		default:
			moved = append(moved, f.digits...) // no report
			f.digits = f.digits[:0]
			if f.state >= mouseButton || c != mousePrefix[f.state] {
				f.state = 0
			}
			if c == mousePrefix[f.state] {
				f.state++
			}
		}
		moved = append(moved, c)
	}
	return moved
}

// place appends a number that was moved, within the screen.
func (f *mouseFilter) place(b []byte, by, limit int) []byte {
	n, err := strconv.Atoi(string(f.digits))
	if err == nil {
		b = strconv.AppendInt(b, int64(max(1, min(n+by, limit))), 10)
	}
	f.digits = f.digits[:0]
	return b
}
