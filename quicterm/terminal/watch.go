package terminal

import (
	"bytes"
	"context"
	"strings"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Watch shows the screen of a session that its user only watches, in a window that the user moves with
// the arrow keys.
type Watch struct{ *window }

// Watch returns a way to show a session, in place of Streams: its Session is to be run.
func (t *Terminal) Watch() Watch {
	return Watch{newWindow(t.display, t.Size(), screen.New(80, 24, screen.Limits{}), clippedText)}
}

// Streams returns where the session's output and events are to go.
func (w Watch) Streams() client.Streams {
	d := w.display
	return client.Streams{
		Stdout:   w,
		Replayed: d.endReplay,
		Changed:  d.setLink,
		Ending:   func(by string) { d.notice(EndingText(by)) },
		Lost: func(g client.Gap) {
			d.notice(GapText(g, false, d.cfg.Skips))
			w.restart(g.Snapshot)
		},
		Began:   w.restart,
		Resized: func(s wire.Sizing) { w.resize(s.Size) },
	}
}

// pans are the keys that move the window over the screen: by columns and by parts of the window's
// height. Others let it follow the cursor again.
var pans = map[string]struct{ dx, dy, pages int }{
	"\x1b[A": {dy: -1}, "\x1bOA": {dy: -1},
	"\x1b[B": {dy: 1}, "\x1bOB": {dy: 1},
	"\x1b[C": {dx: 4}, "\x1bOC": {dx: 4},
	"\x1b[D": {dx: -4}, "\x1bOD": {dx: -4},
	"\x1b[5~": {pages: -1},
	"\x1b[6~": {pages: 1},
}

// typed handles keys. It reports whether the user leaves.
func (w Watch) typed(b []byte) (leave bool) {
	const ctrlC = 3
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(b) > 0 {
		n := 1
		if end := bytes.IndexByte(b[1:], '\x1b'); b[0] == '\x1b' {
			if n = len(b); end >= 0 {
				n = end + 1
			}
		}
		key := string(b[:n])
		b = b[n:]
		if pan, ok := pans[key]; ok {
			w.panned = true
			w.x += pan.dx
			w.y += pan.dy + pan.pages*int(w.size.Rows)/2
		} else {
			w.panned = false
		}
		leave = leave || strings.IndexByte(key, ctrlC) >= 0
	}
	w.display.texts.Store(false)
	w.redraw()
	return leave
}

// Session returns the session for Run. What is typed moves the window; Ctrl-C and the escapes that
// end a session leave it.
func (w Watch) Session(s *client.Session) Session { return watched{s, w} }

// A watched session takes no input. The server would ignore it.
type watched struct {
	*client.Session
	watch Watch
}

func (s watched) Run(ctx context.Context) (int, error) {
	if size := s.Sizing().Size; size.Cols > 0 && size.Rows > 0 {
		s.watch.resize(size) // not before: it draws, and the terminal is only now prepared
	}
	defer s.watch.stop()
	return s.Session.Run(ctx)
}

func (s watched) TryWrite(b []byte) (int, uint64, error) {
	n, err := s.Write(b)
	return n, 0, err
}

func (s watched) Write(b []byte) (int, error) {
	if s.watch.typed(b) {
		s.Leave()
	}
	return len(b), nil
}

func (s watched) Flush()            {}
func (s watched) CloseWrite() error { return nil }
func (s watched) Skip() error       { return nil }

func (s watched) TakeSize(wire.Size) error { return nil }

func (s watched) Resize(size wire.Size) error {
	s.watch.setSize(size)
	return nil
}
