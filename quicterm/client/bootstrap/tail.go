package bootstrap

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A tail keeps the last lines that are written to it, printable, and logs all.
type tail struct {
	log *slog.Logger

	mu   sync.Mutex
	line []byte // the one that has not ended, at most maxShown bytes of it
	kept []string
}

// Write implements [io.Writer]. It does not block.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for part := range bytes.Lines(b) {
		text, ended := bytes.CutSuffix(part, []byte("\n"))
		t.line = append(t.line, text[:min(len(text), maxShown-len(t.line))]...)
		if ended {
			t.endLocked()
		}
	}
	return len(b), nil
}

func (t *tail) endLocked() {
	text := wire.Printable(strings.TrimSpace(string(t.line)), maxShown)
	if t.line = t.line[:0]; text == "" {
		return
	}
	t.log.Debug("the server says", "line", text)
	if len(t.kept) == maxTail {
		t.kept = t.kept[1:]
	}
	t.kept = append(t.kept, text)
}

// lines returns the last lines.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked()
	return t.kept
}
