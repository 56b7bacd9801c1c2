package trace

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
)

const (
	codeThreshold = 30 * time.Millisecond // terminal.integrated.localEchoLatencyThreshold
	codeSamples   = 24
	codeMin       = 5 // samples to begin with
	codeAccuracy  = 0.3
	codeTimeout   = 500 * time.Millisecond
)

var (
	codePassword = regexp.MustCompile(`(?i)(\W|^)(pat|token|password|passphrase|passwd)(\W.*:|:)`)
	codeExcluded = regexp.MustCompile(`(?i)\b(vim|vi|nano|tmux)\b`) // titles
	codeModes    = regexp.MustCompile(`^(\x1b\[\??25[hl])+`)
	codeStyles   = regexp.MustCompile(`^(\x1b\[[0-9;]*m)+`)
	codeMove     = regexp.MustCompile(`^\x1b\[([0-9]*)(;[35])?O?([DC])`)
)

// Code predicts by the rules of Visual Studio Code's local echo, on the main screen. It expects
// certain output for each key: the character, \b and an erase, a move of the cursor, a new line. If
// other output comes, all predictions end. A key that it does not know, a backspace after a
// character, and moves left of where typing began are boundaries: what is typed behind one shows when the
// expected output up to there has come. It shows predictions once 6 of its last 24 have been judged,
// 30 % were right and the median took 30 ms.
type Code struct {
	None
	expected []*codeGuess
	behind   int         // boundaries so far
	cursor   *place      // where the predictions put it; nil for the true one
	held     []byte      // output that may become what is expected
	record   []codeJudge // of the last guesses, the newest last
	shows    bool
	lowest   place // the least column of the row that has been typed in
	expires  time.Time
}

type codeJudge struct {
	took  time.Duration
	right bool
}

// NewCode returns a Code.
func NewCode() *Code { return &Code{} }

type codeKind int

const (
	codeHard codeKind = iota // matches nothing
	codeChar
	codeBack
	codeLine
	codeWrap
	codeGo
)

// A codeGuess is output that is expected for a key, and what it will have shown.
type codeGuess struct {
	kind      codeKind
	boundary  int
	tentative bool // is never shown
	at        time.Time
	char      string
	applied   bool
	from, to  place
	last      bool // nothing but blanks is right of a backspace
}

func (c *Code) Reset(time.Time) {
	c.shows = false
	c.cursor = nil
}

// where returns the place where the next prediction begins.
func (c *Code) where(s *screen.Screen) place {
	if c.cursor != nil {
		return *c.cursor
	}
	return cursor(s)
}

func (c *Code) Typed(now time.Time, s *screen.Screen, b []byte, _ uint64) {
	if s.Alternate() {
		return
	}
	x, y := s.Cursor()
	cols, rows := s.Size()
	if x == 1 && y == rows-1 && s.Row(y).Cell(0).Text == ":" {
		return // less, or git log
	}
	if at := cursor(s); at.row != c.lowest.row {
		c.lowest = at
	} else {
		c.lowest.x = min(c.lowest.x, at.x)
	}
	for len(b) > 0 {
		switch move := codeMove.FindSubmatch(b); {
		case b[0] == 0x7f:
			if n := len(c.expected); n > 0 && c.expected[n-1].kind == codeChar {
				c.behind++
			}
			c.left(now, s, &codeGuess{kind: codeBack})
			b = b[1:]
		case b[0] >= ' ' && b[0] < 0x7e:
			if c.add(now, s, &codeGuess{kind: codeChar, char: string(b[0])}) && c.where(s).x >= cols {
				c.add(now, s, &codeGuess{kind: codeWrap, tentative: true})
				c.behind++
			}
			b = b[1:]
		case move != nil || bytes.HasPrefix(b, []byte("\x1bf")) || bytes.HasPrefix(b, []byte("\x1bb")):
			g := &codeGuess{kind: codeGo}
			words, forward, n, size := true, b[1] == 'f', 1, 2
			if move != nil {
				words, forward, size = len(move[2]) > 0, move[3][0] == 'C', len(move[0])
				if len(move[1]) == 1 && move[1][0] > '0' {
					n = int(move[1][0] - '0')
				}
			}
			g.from = c.where(s)
			g.to = g.from
			for range n {
				g.to = codeStep(s, g.to, words, forward)
			}
			if forward {
				c.add(now, s, g)
			} else {
				c.left(now, s, g)
			}
			b = b[size:]
		case b[0] == '\r' && y < rows-1:
			c.add(now, s, &codeGuess{kind: codeLine})
			b = b[1:]
		default:
			c.add(now, s, &codeGuess{kind: codeHard})
			c.behind++
			b = nil
		}
	}
	if len(c.expected) == 1 {
		c.postpone(now)
	}
}

// codeStep returns where the cursor is after a move by a character or a word.
func codeStep(s *screen.Screen, p place, words, forward bool) place {
	d := 1
	if !forward {
		d = -1
	}
	p.x += d
	if !words {
		return p
	}
	y, inWord := int(p.row-top(s)), false
	cols, rows := s.Size()
	if forward {
		p.x--
	}
	for ; y >= 0 && y < rows && p.x >= 0 && p.x < cols; p.x += d {
		text := s.Row(y).Cell(p.x).Text
		if text == "" {
			return p
		}
		if ch := text[0] | 0x20; ch >= 'a' && ch <= 'z' || text[0] >= '0' && text[0] <= '9' {
			inWord = true
		} else if inWord {
			break
		}
	}
	if !forward {
		p.x++
	}
	return p
}

// left adds a guess that moves to the left: behind a boundary, if it passes where typing began.
func (c *Code) left(now time.Time, s *screen.Screen, g *codeGuess) {
	if c.where(s).x > c.lowest.x {
		c.add(now, s, g)
		return
	}
	g.tentative = true
	c.add(now, s, g)
	c.behind++
}

// add adds a guess, and reports whether it belongs to those that show.
func (c *Code) add(now time.Time, s *screen.Screen, g *codeGuess) bool {
	g.boundary, g.at = c.behind, now
	c.expected = append(c.expected, g)
	if g.boundary != c.expected[0].boundary {
		return false
	}
	c.apply(s, g)
	return true
}

// apply finds out what a guess changes on the screen.
func (c *Code) apply(s *screen.Screen, g *codeGuess) {
	at := c.where(s)
	to := at
	switch g.kind {
	case codeChar:
		to.x++
	case codeBack:
		to.x--
		g.last = c.blank(s, at)
	case codeLine, codeWrap:
		to = place{at.row + 1, 0}
	case codeGo:
		to.x += g.to.x - g.from.x
	}
	g.applied, g.from, g.to = true, at, to
	if !g.tentative {
		c.cursor = &to
	}
}

// blank reports whether nothing is in a row from a place on, with what is predicted.
func (c *Code) blank(s *screen.Screen, from place) bool {
	y := int(from.row - top(s))
	if _, rows := s.Size(); from.row < top(s) || y >= rows {
		return true
	}
	drawn := map[place]string{}
	for _, g := range c.shown() {
		switch {
		case g.applied && g.kind == codeChar:
			drawn[g.from] = strings.TrimSpace(g.char)
		case g.applied && g.kind == codeBack:
			drawn[g.to] = ""
		}
	}
	for x := max(from.x, 0); x < s.Row(y).Len(); x++ {
		text, ok := drawn[place{from.row, x}]
		if !ok {
			text = glyph(s.Row(y).Cell(x))
		}
		if text != "" {
			return false
		}
	}
	return true
}

// outputs returns what may be expected for a guess, in the order in which it is looked for.
func (g *codeGuess) outputs(top uint64) []string {
	switch g.kind {
	case codeChar:
		return []string{g.char}
	case codeBack:
		if g.last {
			return []string{"\b\x1b[K", "\b \b"}
		}
	case codeLine:
		return []string{"\r\n"}
	case codeWrap:
		return []string{" \r\x1b[K", " \r", "\r\n"}
	case codeGo:
		n, final := g.to.x-g.from.x, "C"
		var all []string
		if n < 0 {
			n, final = -n, "D"
			all = append(all, strings.Repeat("\b", n))
		}
		count := strconv.Itoa(n)
		return append(all, strings.Repeat("\x1b["+final, n), "\x1b["+count+final,
			"\x1b["+strconv.Itoa(int(g.to.row-top)+1)+";"+strconv.Itoa(g.to.x+1)+"H")
	}
	return nil
}

func (c *Code) Reads(now time.Time, s *screen.Screen, b []byte) {
	b = append(c.held, b...)
	c.held = nil
	data := b
	if len(c.expected) > 0 && !s.Alternate() {
		boundary := c.expected[0].boundary
	read:
		for len(c.expected) > 0 && len(b) > 0 {
			if modes := codeModes.Find(b); modes != nil {
				b = b[len(modes):]
			}
			g := c.expected[0]
			rest := b
			if g.kind == codeChar {
				rest = rest[len(codeStyles.Find(rest)):]
			}
			matched := len(rest) == 0
			if matched {
				c.held = b
				break
			}
			for _, want := range g.outputs(top(s)) {
				if bytes.HasPrefix(rest, []byte(want)) {
					rest, matched = rest[len(want):], true
					break
				}
				if strings.HasPrefix(want, string(rest)) && len(want) > 1 {
					c.held = bytes.Clone(b)
					break read
				}
			}
			c.learn(now, g, matched)
			if !matched {
				c.expected, c.cursor = nil, nil
				break
			}
			b = rest
			c.expected = slices.Delete(c.expected, 0, 1)
			if g.tentative {
				c.cursor = &g.to
			}
		}
		if len(b) > 0 && c.held == nil {
			c.expected, c.cursor = nil, nil
		}
		if len(c.expected) > 0 && c.expected[0].boundary != boundary {
			for _, g := range c.shown() {
				c.apply(s, g)
			}
		}
	}
	if len(c.expected) == 0 {
		c.cursor = nil
	}
	if codePassword.Match(data) {
		c.add(now, s, &codeGuess{kind: codeHard})
		c.behind++
	}
	c.postpone(now)
}

// shown returns the guesses up to the first boundary.
func (c *Code) shown() []*codeGuess {
	for i, g := range c.expected {
		if g.boundary != c.expected[0].boundary {
			return c.expected[:i]
		}
	}
	return c.expected
}

// learn keeps the record, and decides whether predictions are shown.
func (c *Code) learn(now time.Time, g *codeGuess, right bool) {
	if len(c.record) == codeSamples {
		c.record = slices.Delete(c.record, 0, 1)
	}
	c.record = append(c.record, codeJudge{now.Sub(g.at), right})
	var took []time.Duration
	for _, j := range c.record {
		if j.right {
			took = append(took, j.took)
		}
	}
	if len(c.record) <= codeMin || float64(len(took)) <= codeAccuracy*float64(len(c.record)) {
		return
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median >= codeThreshold {
		c.shows = true
	}
}

// postpone sets when predictions that nothing answers end.
func (c *Code) postpone(now time.Time) {
	c.expires = time.Time{}
	if len(c.expected) == 0 || c.expected[0].kind == codeHard {
		return
	}
	wait := codeTimeout
	for _, j := range c.record {
		if j.right {
			wait = max(wait, j.took*3/2)
		}
	}
	c.expires = now.Add(wait)
}

func (c *Code) Overlay(now time.Time, s *screen.Screen) (o predict.Overlay, until time.Time) {
	if !c.expires.IsZero() && !now.Before(c.expires) {
		c.expected, c.cursor, c.expires = nil, nil, time.Time{}
	}
	if !c.shows || s.Alternate() || len(c.expected) == 0 || codeExcluded.MatchString(s.Title()) {
		return o, c.expires
	}
	cells := map[place]predict.Cell{}
	cols, rows := s.Size()
	put := func(p place, text string) {
		if y := int(p.row - top(s)); p.row >= top(s) && y < rows && p.x >= 0 && p.x < cols {
			dim := screen.Style{Attributes: screen.Dim}
			cells[p] = predict.Cell{X: p.x, Y: y, Cell: screen.Cell{Text: text, Width: 1, Style: dim}}
		}
	}
	for _, g := range c.shown() {
		switch {
		case !g.applied || g.tentative:
			continue
		case g.kind == codeChar:
			put(g.from, g.char)
		case g.kind == codeBack:
			put(g.to, "")
		}
		if y := int(g.to.row - top(s)); g.to.row >= top(s) && y < rows && g.to.x >= 0 {
			o.Cursor = &predict.Position{X: min(g.to.x, cols), Y: y}
		}
	}
	for _, cell := range cells {
		o.Cells = append(o.Cells, cell)
	}
	return o, c.expires
}
