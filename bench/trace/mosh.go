package trace

import (
	"time"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
)

const (
	moshPaste  = 100                   // bytes at once that are more are a paste, and reset it
	moshShow   = 60 * time.Millisecond // predictions are shown above this round trip
	moshGlitch = 250 * time.Millisecond
)

// Mosh predicts by the rules of mosh 1.4. A character is inserted at the cursor, a backspace takes
// one away, left and right move the cursor. All other keys, and the last column, begin an epoch.
// What is predicted in an epoch shows once the server has confirmed one cell of it, which was not
// there before. The server's echo ack of a key judges what that predicted: a cell that is wrong
// ends its epoch, or all predictions if the epoch was confirmed; so does a wrong cursor.
type Mosh struct {
	None
	rows      map[int][]moshCell
	cursors   []moshCursor
	epoch     int
	confirmed int
	acked     uint64
	srtt      time.Duration
	glitch    bool
	sequence  []byte // of a key that is not complete
}

// NewMosh returns a Mosh.
func NewMosh() *Mosh { return &Mosh{rows: map[int][]moshCell{}, epoch: 1} }

type moshGuess struct {
	epoch int
	frame uint64
	at    time.Time
}

type moshCell struct {
	moshGuess
	active  bool
	unknown bool // something is there, but not known what
	cell    screen.Cell
	before  []string // what was there, or was predicted
}

type moshCursor struct {
	moshGuess
	x, y int
}

func (m *Mosh) SetRTT(srtt time.Duration) { m.srtt = srtt }
func (m *Mosh) Reset(time.Time)           { m.reset() }

func (m *Mosh) reset() {
	clear(m.rows)
	m.cursors = nil
	m.epoch++
}

func (m *Mosh) EchoAcked(now time.Time, s *screen.Screen, frame uint64) {
	m.acked = max(m.acked, frame)
}

func (m *Mosh) Typed(now time.Time, s *screen.Screen, b []byte, frame uint64) {
	if len(b) > moshPaste {
		m.reset()
		return
	}
	g := moshGuess{frame: frame, at: now}
	for len(b) > 0 {
		m.judge(now, s)
		if len(m.sequence) > 0 || b[0] == '\x1b' {
			m.sequence = append(m.sequence, b[0])
			b = b[1:]
			m.control(s, g)
			continue
		}
		r, size := utf8.DecodeRune(b)
		b = b[size:]
		switch {
		case r == 0x7f:
			m.backspace(s, g)
		case r == '\r':
			m.epoch++
			m.newline(s, g)
		case r < ' ' || width(r) != 1:
			m.epoch++
		default:
			m.insert(s, g, r)
		}
	}
}

// width returns how many columns a character takes.
func width(r rune) int {
	s := screen.New(4, 1, screen.Limits{Lines: 1})
	s.Write([]byte(string(r)))
	x, _ := s.Cursor()
	return x
}

// control looks at a control sequence after another byte.
func (m *Mosh) control(s *screen.Screen, g moshGuess) {
	q := m.sequence
	final := q[len(q)-1]
	switch {
	case len(q) == 1, len(q) == 2 && (final == '[' || final == 'O'):
		return
	case len(q) == 2:
		m.epoch++
	case final < '@':
		return
	case final == 'C' || final == 'D':
		c := m.cursor(s, g)
		cols, _ := s.Size()
		if x := c.x + 1 - 2*int(final-'C'); x >= 0 && x < cols {
			c.x, c.moshGuess = x, m.now(g)
		}
	default:
		m.epoch++
	}
	m.sequence = nil
}

func (m *Mosh) now(g moshGuess) moshGuess {
	g.epoch = m.epoch
	return g
}

// cursor returns the cursor that is predicted in this epoch.
func (m *Mosh) cursor(s *screen.Screen, g moshGuess) *moshCursor {
	n := len(m.cursors)
	switch {
	case n == 0:
		x, y := s.Cursor()
		cols, _ := s.Size()
		m.cursors = append(m.cursors, moshCursor{m.now(g), min(x, cols-1), y})
	case m.cursors[n-1].epoch != m.epoch:
		m.cursors = append(m.cursors, moshCursor{m.now(g), m.cursors[n-1].x, m.cursors[n-1].y})
	}
	return &m.cursors[len(m.cursors)-1]
}

func (m *Mosh) row(s *screen.Screen, y int) []moshCell {
	if m.rows[y] == nil {
		cols, _ := s.Size()
		m.rows[y] = make([]moshCell, cols)
	}
	return m.rows[y]
}

// guess begins a prediction of a cell, and keeps what was there or predicted before.
func (m *Mosh) guess(s *screen.Screen, row []moshCell, x, y int, g moshGuess) *moshCell {
	c := &row[x]
	if c.active && !c.unknown {
		c.before = append(c.before, glyph(c.cell))
	} else {
		c.before = nil
	}
	c.active, c.unknown, c.moshGuess = true, false, m.now(g)
	c.before = append(c.before, glyph(s.Row(y).Cell(x)))
	return c
}

// takes makes a cell become what another is.
func (c *moshCell) takes(s *screen.Screen, from *moshCell, x, y int) {
	switch {
	case !from.active:
		c.cell = s.Row(y).Cell(x)
	case from.unknown:
		c.unknown = true
	default:
		c.cell = from.cell
	}
}

func (m *Mosh) insert(s *screen.Screen, g moshGuess, r rune) {
	at := m.cursor(s, g)
	row := m.row(s, at.y)
	last := len(row) - 1
	if at.x >= last {
		m.epoch++
		at = m.cursor(s, g)
	}
	for x := last; x > at.x; x-- {
		c := m.guess(s, row, x, at.y, g)
		if x == last {
			c.unknown = true
		} else {
			c.takes(s, &row[x-1], x-1, at.y)
		}
	}
	c := m.guess(s, row, at.x, at.y, g)
	c.cell = screen.Cell{Text: string(r), Width: 1}
	if at.x > 0 {
		if left := &row[at.x-1]; left.active && !left.unknown {
			c.cell.Style = left.cell.Style
		} else {
			c.cell.Style = s.Row(at.y).Cell(at.x - 1).Style
		}
	}
	at.moshGuess = m.now(g)
	if at.x < last {
		at.x++
	} else {
		m.epoch++
		m.newline(s, g)
	}
}

func (m *Mosh) backspace(s *screen.Screen, g moshGuess) {
	at := m.cursor(s, g)
	if at.x == 0 {
		return
	}
	at.x--
	at.moshGuess = m.now(g)
	row := m.row(s, at.y)
	for x := at.x; x < len(row); x++ {
		c := m.guess(s, row, x, at.y, g)
		if x+2 < len(row) {
			c.takes(s, &row[x+1], x+1, at.y)
		} else {
			c.unknown = true
		}
	}
}

func (m *Mosh) newline(s *screen.Screen, g moshGuess) {
	at := m.cursor(s, g)
	at.x = 0
	if _, rows := s.Size(); at.y < rows-1 {
		at.y++
		return
	}
	row := m.row(s, at.y)
	for x := range row {
		row[x] = moshCell{moshGuess: m.now(g), active: true, cell: screen.Cell{Width: 1}}
	}
}

// judge compares what echo acks judge with the screen.
func (m *Mosh) judge(now time.Time, s *screen.Screen) {
	_, rows := s.Size()
	m.glitch = false
	for y := range rows {
		row := m.rows[y]
		for x := range row {
			c := &row[x]
			if !c.active {
				continue
			}
			if m.acked < c.frame {
				m.glitch = m.glitch || now.Sub(c.at) >= moshGlitch
				continue
			}
			is, want := s.Row(y).Cell(x), glyph(c.cell)
			switch {
			case c.unknown || want == "":
			case glyph(is) != want:
				if c.epoch <= m.confirmed {
					m.reset()
					return
				}
				m.kill(s, c.epoch)
				continue
			default:
				credit := true
				for _, b := range c.before {
					credit = credit && b != want
				}
				if credit {
					m.confirmed = max(m.confirmed, c.epoch)
				}
				for k := x; k < len(row); k++ {
					row[k].cell.Style = is.Style
				}
			}
			row[x] = moshCell{}
		}
	}
	if n := len(m.cursors); n > 0 && m.acked >= m.cursors[n-1].frame {
		cols, _ := s.Size()
		if x, y := s.Cursor(); min(x, cols-1) != m.cursors[n-1].x || y != m.cursors[n-1].y {
			m.reset()
			return
		}
	}
	kept := m.cursors[:0]
	for _, c := range m.cursors {
		if m.acked < c.frame {
			kept = append(kept, c)
		}
	}
	m.cursors = kept
}

// kill ends the predictions of an epoch that is not confirmed, and of those after it.
func (m *Mosh) kill(s *screen.Screen, epoch int) {
	kept := m.cursors[:0]
	for _, c := range m.cursors {
		if c.epoch < epoch {
			kept = append(kept, c)
		}
	}
	x, y := s.Cursor()
	m.cursors = append(kept, moshCursor{moshGuess{epoch: m.epoch, frame: m.acked + 1}, x, y})
	for _, row := range m.rows {
		for x := range row {
			if row[x].active && row[x].epoch >= epoch {
				row[x] = moshCell{}
			}
		}
	}
	m.epoch++
}

func (m *Mosh) Overlay(now time.Time, s *screen.Screen) (o predict.Overlay, until time.Time) {
	m.judge(now, s)
	if m.srtt <= moshShow && !m.glitch {
		return o, until
	}
	for _, c := range m.cursors {
		if c.epoch <= m.confirmed {
			o.Cursor = &predict.Position{X: c.x, Y: c.y}
		}
	}
	_, rows := s.Size()
	for y := range rows {
		for x, c := range m.rows[y] {
			if c.active && !c.unknown && c.epoch <= m.confirmed && c.cell != s.Row(y).Cell(x) {
				o.Cells = append(o.Cells, predict.Cell{X: x, Y: y, Cell: c.cell})
			}
		}
	}
	return o, until
}
