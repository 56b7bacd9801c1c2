package events

import (
	"bytes"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen/marks"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxAnswers bounds the answers to the queries in a piece of output, in bytes.
const maxAnswers = 256

// maxHeard is how many events a piece of output has, at most: the log would not keep more.
const maxHeard = maxKept - 1

// A Hearing makes events of what output tells, as the listener of a screen.
type Hearing struct {
	now     time.Time
	deaf    bool
	heard   []wire.Event
	omitted uint64
	answers []byte // to queries

	marked, before marked
}

// marked is what the marks of a shell have said.
type marked struct {
	running bool
	began   time.Time
	ends    bool // the shell says when a command ends, and not only when the next prompt begins
}

// Begin is called before a piece of output is heard. When deaf is true, it was heard before.
func (h *Hearing) Begin(now time.Time, deaf bool) {
	h.now, h.deaf, h.before = now, deaf, h.marked
}

// Take returns, once, the events of the pieces that were heard.
func (h *Hearing) Take() (heard []wire.Event) {
	heard = h.heard
	if h.omitted > 0 {
		heard = append(heard, wire.Event{Kind: wire.EventOmitted, Time: h.now.UnixMilli(), Count: h.omitted})
	}
	h.heard, h.omitted = nil, 0
	return heard
}

// Answers returns, once, the answers to the queries that were heard.
func (h *Hearing) Answers() (answers []byte) {
	answers, h.answers = h.answers, nil
	return answers
}

// Forget forgets what was heard since the last Begin, which is to be heard again, and all that Take would return.
func (h *Hearing) Forget() { h.heard, h.answers, h.omitted, h.marked = nil, nil, 0, h.before }

func (h *Hearing) add(e wire.Event) {
	if len(h.heard) == maxHeard {
		h.omitted++
		return
	}
	e.Time = h.now.UnixMilli()
	h.heard = append(h.heard, e)
}

// Bell counts bells that follow each other as one event.
func (h *Hearing) Bell() {
	n := len(h.heard)
	switch {
	case h.deaf:
	case n > 0 && h.heard[n-1].Kind == wire.EventBell:
		h.heard[n-1].Count++
	default:
		h.add(wire.Event{Kind: wire.EventBell, Count: 1})
	}
}

// Query hears a query of a program, with a terminal's answer.
func (h *Hearing) Query(answer string) {
	if !h.deaf && len(h.answers)+len(answer) <= maxAnswers {
		h.answers = append(h.answers, answer...)
	}
}

// Notification hears a notification.
func (h *Hearing) Notification(text string) {
	if !h.deaf {
		h.add(wire.Event{Kind: wire.EventNotification, Text: text})
	}
}

// Mark hears a mark of a shell.
func (h *Hearing) Mark(m marks.Mark) {
	s := &h.marked
	switch {
	case h.deaf:
	case m.Kind == marks.Output:
		s.running, s.began = true, h.now
		h.add(wire.Event{Kind: wire.EventBegan})
	case m.Kind == marks.End, m.Kind == marks.Prompt && !s.ends:
		s.ends = m.Kind == marks.End
		if !s.running { // a second one is of another hook of the shell
			return
		}
		s.running = false
		e := wire.Event{Kind: wire.EventEnded, Took: h.now.Sub(s.began).Milliseconds()}
		if m.Status >= 0 {
			status := uint8(m.Status)
			e.Status = &status
		}
		h.add(e)
	}
}

// TellsQuickly reports whether some output, which is not much, may be of a kind that is told: it is drawn at once.
func TellsQuickly(b []byte) bool {
	if len(b) > maxPrompt {
		return false
	}
	if bytes.IndexByte(b, '\a') >= 0 || asks(b) {
		return true
	}
	for { // ESC is more frequent
		i := bytes.IndexByte(b, ']')
		if i < 0 {
			return false
		}
		if i > 0 && b[i-1] == 0x1b {
			return true
		}
		b = b[i+1:]
	}
}

// asks reports whether some output may end with a query, for whose answer the program waits.
func asks(b []byte) bool {
	i := bytes.LastIndexByte(b, 0x1b)
	return i >= 0 && (b[len(b)-1] == 'n' || b[len(b)-1] == 'c')
}

// maxPrompt is more than a shell prints at once for a prompt with its marks.
const maxPrompt = 1 << 10
