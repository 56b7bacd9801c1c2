package predict

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// A record counts what became of the predictions of one class. Old ones weigh less and less.
type record struct{ hits, misses float64 }

const (
	// decay is the weight of a record after one more prediction: what is more than some 30 keys old hardly counts.
	decay = 0.97
	// provenHits and provenMisses are how much must have been right, and how little wrong of it, before
	// predictions of a class are drawn.
	provenHits   = 1.9
	provenMisses = 0.04
)

func (r *record) add(hit bool) {
	r.hits *= decay
	r.misses *= decay
	if hit {
		r.hits++
	} else {
		r.misses++
	}
}

func (r record) proven() bool {
	return r.hits >= provenHits && r.misses <= provenMisses*(r.hits+r.misses)
}

// A history is what was learned of one program on one of the two screens.
type history struct {
	context   uint16
	alternate bool
	model     model
	records   [classes]record
	epochs    record   // how often the first key of an epoch was echoed
	prompts   []prompt // the newest first
}

// A prompt is the end of one behind which typing was echoed.
type prompt struct {
	text string
	record
}

const (
	// maxHistories bounds the programs that are remembered, the least recently used one goes.
	maxHistories = 32
	// maxPrompts bounds the prompts of a program: a first and a continued one, root's, and that of a tool.
	maxPrompts = 6
	// promptCells is how much of a prompt is compared: the rest has a folder or the time in it.
	promptCells = 2
)

// evidence holds the histories, the most recently used one first.
type evidence []*history

func (e *evidence) of(context uint16, alternate bool, m model) *history {
	same := func(h *history) bool { return h.context == context && h.alternate == alternate && h.model == m }
	i := slices.IndexFunc(*e, same)
	var h *history
	if i >= 0 {
		h = (*e)[i]
		*e = slices.Delete(*e, i, i+1)
	} else {
		h = &history{context: context, alternate: alternate, model: m}
		for _, c := range m.usual(alternate) {
			h.records[c] = record{hits: provenHits + 1}
		}
		if len(*e) == maxHistories {
			*e = (*e)[:maxHistories-1]
		}
	}
	*e = slices.Insert(*e, 0, h)
	return h
}

// began records whether the first key of an epoch, behind a prompt, was echoed.
func (h *history) began(text string, hit bool) {
	h.epochs.add(hit)
	if text == "" {
		return
	}
	i := slices.IndexFunc(h.prompts, func(p prompt) bool { return p.text == text })
	p := prompt{text: text}
	if i >= 0 {
		p = h.prompts[i]
		h.prompts = slices.Delete(h.prompts, i, i+1)
	} else if len(h.prompts) == maxPrompts {
		h.prompts = h.prompts[:maxPrompts-1]
	}
	p.add(hit)
	h.prompts = slices.Insert(h.prompts, 0, p)
}

// knows reports whether typing behind a prompt is always echoed.
func (h *history) knows(text string) bool {
	return text != "" && slices.ContainsFunc(h.prompts, func(p prompt) bool {
		return p.text == text && p.hits >= 1 && p.misses <= provenMisses*p.hits
	})
}

// promptAt returns what a prompt left of the column x is known by. Of a program whose lines the kernel
// edits it is all of the text: the next question may be for a secret.
func (h *history) promptAt(row screen.Row, x int) string {
	if h.model == cooked {
		return strings.TrimSpace(textBefore(row, x))
	}
	return promptAt(row, x)
}

// promptAt returns the end of the prompt left of the column x, or nothing if what is there does not end
// as the prompts of shells and their like do. Questions, as for passwords, do not.
func promptAt(row screen.Row, x int) string {
	text, found := "", false
	for i := max(x-promptCells, 0); i < x; i++ {
		c := row.Cell(i)
		if blank(c) {
			text += " "
			continue
		}
		text += c.Text
		r, _ := utf8.DecodeRuneInString(c.Text)
		switch {
		case r == '.' && strings.Trim(textBefore(row, x), " .") == "": // python's ...
			found = true
		case strings.ContainsRune(":?.,*•", r) || alphanumeric(r):
			found = false
		default:
			found = true
		}
	}
	if !found {
		return ""
	}
	return text
}
