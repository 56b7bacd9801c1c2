package trace

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
)

const (
	// settled is how long after a key the output belongs to its effect, if no other key comes before.
	settled = 300 * time.Millisecond

	// maxKey is how many bytes a key has at most: more at once is a paste.
	maxKey = 32
)

// A key is an input event, and what it did.
type key struct {
	at      time.Duration
	data    string
	secret  bool
	effect  bool    // it did something in the cursor's row, or moved the cursor
	typing  bool    // it wrote or erased text where the cursor was
	cursor  place   // where the cursor is after it
	changed []place // cells that it changed in the row of the cursor
	after   int     // the index of the view after it
	last    int     // the index of the last view before the next key
}

// A truth is all that a trace says about its keys.
type truth struct {
	keys  []key
	views []*view
	from  []int // for each count of output events, the index of the newest view with no more
}

// study plays a trace without a network, and looks at what each key does.
func study(t *Trace) *truth {
	s := screen.New(t.Cols, t.Rows, screen.Limits{})
	u := &truth{views: []*view{look(s)}, from: []int{0}}
	seen := true // whether the newest view is of all output so far
	view := func() int {
		if !seen {
			u.views = append(u.views, look(s))
			u.from[len(u.from)-1] = len(u.views) - 1
			seen = true
		}
		return len(u.views) - 1
	}
	before, open, secret := 0, false, false // of the last key
	settle := func() {
		if open {
			k := &u.keys[len(u.keys)-1]
			k.after = view()
			u.judge(k, u.views[before], u.views[k.after])
			open = false
		}
	}
	for _, e := range t.Events {
		if open && e.At > u.keys[len(u.keys)-1].at+settled {
			settle()
		}
		switch e.Code {
		case asciicast.Input:
			settle()
			before = view()
			if n := len(u.keys); n > 0 {
				u.keys[n-1].last = before
			}
			erases := e.Data == "\x7f" && len(u.keys) > 0 && u.keys[len(u.keys)-1].secret
			u.keys = append(u.keys, key{at: e.At, data: e.Data, secret: secret || erases})
			open = true
		case asciicast.Output:
			s.Write([]byte(e.Data))
		case asciicast.Resize:
			cols, rows, _ := asciicast.ParseSize(e.Data)
			s.Resize(cols, rows)
		case asciicast.Marker:
			secret = e.Data == SecretBegins
		}
		if e.Code == asciicast.Output || e.Code == asciicast.Resize {
			u.from = append(u.from, u.from[len(u.from)-1])
			seen = false
		}
	}
	settle()
	if n := len(u.keys); n > 0 {
		u.keys[n-1].last = view()
	}
	return u
}

// judge finds out what a key did between two views.
func (u *truth) judge(k *key, before, after *view) {
	k.cursor = after.cursor
	for _, row := range slices.Compact([]uint64{before.cursor.row, after.cursor.row}) {
		was := before.line(row)
		for x, text := range after.line(row) {
			if was == nil && text != "" || x < len(was) && text != was[x] {
				k.changed = append(k.changed, place{row, x})
			}
		}
	}
	k.effect = len(k.data) <= maxKey && (len(k.changed) > 0 || before.cursor != after.cursor)
	if k.effect {
		u.judgeTyping(k, before, after)
	}
}

// judgeTyping finds out whether a key writes or erases text at the cursor. Then its effect are the
// cells that the cursor passed, and the text behind it if that has moved: no suggestion of a
// program, and nothing that is elsewhere in the row.
func (u *truth) judgeTyping(k *key, before, after *view) {
	from, to := before.cursor, after.cursor
	switch {
	case isText(k.data):
		passed, ok := between(after, from, to)
		k.typing = ok && spells(after, passed, k.data)
		if k.typing {
			k.changed = append(passed, moved(before, after, from, to)...)
		}
	case k.data == "\x7f" || k.data == "\b":
		k.typing = from.row == to.row && (to.x == from.x-1 || to.x == from.x-2) && len(k.changed) > 0
		if k.typing {
			if k.changed = moved(before, after, from, to); k.changed == nil {
				k.changed, _ = between(after, to, from)
			}
		}
	}
}

func isText(data string) bool {
	if r, _ := utf8.DecodeRuneInString(data); r < ' ' || r == 0x7f {
		return false
	}
	return data != "" && utf8.ValidString(data)
}

// between returns the cells from one place up to another, which may be in the next row.
func between(v *view, from, to place) (cells []place, ok bool) {
	if to.row != from.row && to.row != from.row+1 || to.row == from.row && to.x <= from.x {
		return nil, false
	}
	for p := from; p != to; p.x++ {
		if p.row < to.row && p.x >= v.cols {
			p = place{to.row, 0}
			if p == to {
				break
			}
		}
		if _, ok := v.at(p); !ok {
			return nil, false
		}
		cells = append(cells, p)
	}
	return cells, len(cells) > 0
}

// spells reports whether cells have a text. Those that a wrapped wide character left empty, and
// the second halves of such, are blank.
func spells(v *view, cells []place, text string) bool {
	var b strings.Builder
	for _, c := range cells {
		t, _ := v.at(c)
		b.WriteString(t)
	}
	return b.String() == strings.ReplaceAll(text, " ", "")
}

// moved returns the cells of the text behind the cursor, if a key has moved all of it along.
func moved(before, after *view, from, to place) (cells []place) {
	was, is := before.line(from.row), after.line(to.row)
	if from.row != to.row || was == nil || is == nil {
		return nil
	}
	blank, same := true, true
	for n := range min(after.cols-max(from.x, to.x), before.cols-from.x) {
		if was[from.x+n] != is[to.x+n] {
			return nil
		}
		blank = blank && was[from.x+n] == ""
		if x := to.x + n; was[x] != is[x] {
			same = false
			cells = append(cells, place{to.row, x})
		}
	}
	if blank || same {
		return nil
	}
	return cells
}
