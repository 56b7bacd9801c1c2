package predict

import (
	"testing"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// One output is one hit, however often the held keys are looked at.
func TestNoticedOnce(t *testing.T) {
	s := screen.New(80, 24, screen.Limits{})
	p := New(Always)
	p.keys = []key{{stroke: stroke{class: printable, r: 'a'}}}
	p.last = 'i'
	p.glance(s)
	s.Write([]byte("a"))
	p.before, p.latest = p.latest, p.before
	p.noticed(s, 1)
	p.noticed(s, 1)
	h := p.evidence.of(p.hint.Context, p.alternate, p.modelOf(s))
	if hits := h.after['i'].hits; hits != 1 {
		t.Errorf("%v hits, want 1", hits)
	}
}
