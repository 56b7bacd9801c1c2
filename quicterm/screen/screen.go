// Package screen is a terminal emulator without a terminal: it obeys the output of programs
// and knows what a terminal would show.
//
// It follows xterm.js, with which its tests compare it, except where most terminals agree against it:
// a saved cursor keeps its place when the screen scrolls, and which character set is in use;
// relative moves in origin mode are not displaced; there are left and right margins; no wide character is
// ever torn apart; a combining character joins the one before the cursor; a resize keeps the text below
// the cursor. The widths of characters are those of a newer Unicode.
//
// It never panics, whatever the input; its memory is bounded by the size of the screen and by Limits;
// how the output is cut into chunks makes no difference. Of an image it shows a word in its place.
//
// A Screen has no goroutine and is not safe for concurrent use.
package screen

import (
	"github.com/quicterm/quicterm/quicterm/screen/charset"
	"github.com/quicterm/quicterm/quicterm/screen/marks"
	"github.com/quicterm/quicterm/quicterm/screen/pool"
	"github.com/quicterm/quicterm/quicterm/screen/vt"
)

// Limits bound the scrollback. Zero values stand for the defaults.
type Limits struct {
	Lines int // rows of the main screen that have scrolled off, default 1000
	// Bytes is what they take in memory, default 2 MiB. Their styles and hyperlinks take as much again at
	// most, which is some thousands of different colours: of a scrollback with more, the oldest rows go.
	Bytes int
}

const (
	defaultLines = 1000
	defaultBytes = 2 << 20

	// minCols is the smallest width: a wide character must fit.
	minCols = 2
	// maxCols and maxCells bound a screen: the size comes from a peer.
	maxCols  = 4096
	maxCells = 1 << 20
)

// A Screen is the state of a terminal.
type Screen struct {
	parser     vt.Parser
	cols, rows int
	limits     Limits

	main, alt *buffer // alt is nil until a program uses it
	buf       *buffer // the one that is shown
	entered   int     // the private mode that showed the alternate screen
	history   history
	stay      *stay  // what the main screen and the history were before they were resized, nil if that does not matter
	lastLine  uint64 // the newest line id

	x, y     int // the cursor; x == cols while a wrap is pending
	pen      Style
	penID    styleID
	penKnown bool    // penID is the pen's
	eraseID  styleID // of blanks: the pen's background; valid with penKnown
	styles   styles
	clusters pool.Pool[string] // characters with combining marks
	links    pool.Pool[Hyperlink]

	charsets   charset.Sets
	tabs       []bool // stops, by column
	modes      modes
	changed    changedModes
	mouse      mouse
	modifyKeys int // xterm's modifyOtherKeys
	shape      int // of the cursor, DECSCUSR
	title      string
	titles     []pushedTitle
	directory  string     // as OSC 7 gives it
	marked     marks.Kind // the last mark of the shell, 0 before the first
	typed      typed      // by the person, at the shell's prompts
	colors     colors
	repeat     bool // the last thing was a character, which REP repeats
	listener   Listener

	packed  []byte // for history.push
	sweepAt int    // how many styles, clusters and links there are when the next sweep is due
}

// New returns a Screen of a terminal just after its reset.
func New(cols, rows int, limits Limits) *Screen {
	if limits.Lines <= 0 {
		limits.Lines = defaultLines
	}
	if limits.Bytes <= 0 {
		limits.Bytes = defaultBytes
	}
	s := &Screen{limits: limits}
	s.cols, s.rows = clampSize(cols, rows)
	s.reset()
	return s
}

// A Listener hears what a program tells a terminal that is not shown. It must not use the Screen.
type Listener interface {
	Bell()
	Notification(text string)
	Mark(m marks.Mark)   // of a shell, not on the alternate screen
	Query(answer string) // that a terminal would give to the program
}

// Listen sets who hears what is written from now on; nil is nobody. What a Snapshot is drawn from tells nothing.
func (s *Screen) Listen(l Listener) { s.listener = l }

func clampSize(cols, rows int) (int, int) {
	cols = min(max(cols, minCols), maxCols)
	return cols, min(max(rows, 1), maxCells/cols)
}

// reset is RIS. The title stays.
func (s *Screen) reset() {
	s.main, s.alt = newBuffer(s.cols, s.rows), nil
	s.buf = s.main
	for y := range s.rows {
		s.main.row(y).line = s.newLine()
	}
	s.ClearHistory()
	s.styles, s.clusters, s.links = styles{Pool: pool.New[Style]()}, pool.New[string](), pool.New[Hyperlink]()
	s.x, s.y = 0, 0
	s.setPen(Style{})
	s.charsets = charset.Sets{}
	s.tabs = defaultTabs(s.cols)
	s.modes, s.changed = usualModes, changedModes{}
	s.mouse, s.modifyKeys, s.shape = mouse{}, 0, 0
	s.colors = nil
	s.marked = 0
	s.repeat = false
}

// Size returns the size, which is at least 2 columns and 1 row.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// Ground reports whether the output so far ends outside of a control sequence and of a character.
func (s *Screen) Ground() bool { return s.parser.Ground() }

// Continuation returns the output since it ended there last. Of a long string it returns the
// beginning. The result is valid until the next call of Write.
func (s *Screen) Continuation() []byte {
	raw, _ := s.parser.Continuation()
	return raw
}

// Title returns the window's title.
func (s *Screen) Title() string { return s.title }

// Alternate reports whether the alternate screen is shown.
func (s *Screen) Alternate() bool { return s.buf != s.main }

// Cursor returns the position of the cursor. x is the number of columns while the next
// character goes to the next row.
func (s *Screen) Cursor() (x, y int) { return s.x, s.y }

// ClearHistory forgets the scrollback.
func (s *Screen) ClearHistory() {
	s.history.clear()
	s.stay = nil
}

func (s *Screen) newLine() uint64 {
	s.lastLine++
	return s.lastLine
}

func (s *Screen) setPen(style Style) {
	s.pen, s.penKnown = style, false
}

func (s *Screen) penStyle() (pen, erase styleID) {
	if !s.penKnown {
		s.penID = s.styles.id(s.pen)
		s.eraseID = s.styles.id(Style{Bg: s.pen.Bg})
		s.penKnown = true
	}
	return s.penID, s.eraseID
}

func (s *Screen) eraser() cell {
	_, id := s.penStyle()
	return blank(id)
}

// A handler is a Screen as the parser sees it.
type handler Screen
