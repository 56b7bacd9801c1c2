package predict

import (
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// aheadAfter is how much longer than a round trip an Enter may lack its answer before what is typed behind
// it shows. It is longer than a command that prints something usually takes.
const aheadAfter = time.Second

// What stands for keys behind an Enter that is not answered. It is not known what will read them: it may ask
// for a secret. So they show that they were typed, and not what they are.
const (
	enterMark = "^M"
	keyMark   = "*"
)

// typedAhead draws, behind the placed keys, that an Enter and further keys wait for the server.
func (p *Predictor) typedAhead(now time.Time, s *screen.Screen, t strip, o *Overlay) {
	if !p.held() || p.alternate || !p.offline && now.Sub(p.keys[0].at) < p.srtt+aheadAfter {
		return
	}
	if b := p.keys[p.placed]; b.r != '\r' || p.modelOf(s) == secret {
		return
	}
	if x, here := t.cursor(); !here || x != p.base {
		return // the program has answered something
	}
	marks := ""
	for _, k := range p.keys[p.placed:] {
		switch {
		case k.r == '\r':
			marks += enterMark
		case k.class == printable, k.class == wide:
			marks += keyMark
		case k.class == backspace:
			marks = strings.TrimSuffix(marks, keyMark)
		}
	}
	x := p.column(p.placed)
	for _, mark := range marks {
		if x >= t.cols || !blank(t.cell(x)) {
			return
		}
		style := screen.Style{Underline: screen.SingleUnderline}
		o.Cells = append(o.Cells, Cell{x, t.y, screen.Cell{Text: string(mark), Width: 1, Style: style}})
		x++
	}
	o.Cursor = p.position(t, x)
}
