package screen

import (
	"fmt"

	"github.com/quicterm/quicterm/quicterm/screen/vt"
)

// attributes is the answer to a query for the primary device attributes (DA1): a VT220 that shows colours.
const attributes = "\x1b[?62;22c"

// query answers what programs wait for before they draw, as xterm does: what the terminal is (DA1), whether it works, and
// where the cursor is (DSR). Other queries have no answer, which programs are used to.
func (s *Screen) query(c *vt.Control) {
	if s.listener == nil {
		return
	}
	switch p := c.Param(0); {
	case c.Final == 'c' && p == 0:
		s.listener.Query(attributes)
	case c.Final == 'n' && p == 5:
		s.listener.Query("\x1b[0n")
	case c.Final == 'n' && p == 6:
		x, y := min(s.x, s.cols-1), s.y
		if s.modes&modeOrigin != 0 {
			x, y = x-s.buf.left, y-s.buf.top
		}
		s.listener.Query(fmt.Sprintf("\x1b[%d;%dR", y+1, x+1))
	}
}
