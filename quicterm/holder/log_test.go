//go:build linux || darwin

package holder

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// A logbook keeps the log of a holder.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logbook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lines returns the lines that contain all words.
func (l *logbook) lines(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.buf.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			found = append(found, line)
		}
	}
	return found
}

// clear forgets all that was logged.
func (l *logbook) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Reset()
}
