package logqueue

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A gated is a writer that blocks until it is opened.
type gated struct {
	open chan struct{}

	mu  sync.Mutex
	got strings.Builder
}

func (g *gated) Write(b []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.Write(b)
}

func (g *gated) lines() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.SplitAfter(strings.TrimSuffix(g.got.String(), "\n"), "\n")
}

// form is that of lines without the time.
func form(w io.Writer) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
}

// While the log is blocked, logging takes no time and bounded memory. Then the lines come in
// their order, and how many were dropped.
func TestBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &gated{open: make(chan struct{})}
		q := Start(w, form)
		q.Logger().Info("first")
		synctest.Wait() // the writer has it, and blocks
		const total = 20_000
		start := time.Now()
		for i := range total {
			q.Logger().Info("line", "i", i)
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("logging took %v", d)
		}
		if q.size > maxBytes {
			t.Errorf("%d bytes wait, want at most %d", q.size, maxBytes)
		}
		kept := len(q.lines)
		close(w.open)
		synctest.Wait()
		q.Logger().Info("last")
		q.Close()
		got := w.lines()
		if want := kept + 3; len(got) != want {
			t.Fatalf("%d lines, want %d", len(got), want)
		}
		for i, line := range got[1 : 1+kept] {
			if want := fmt.Sprintf("level=INFO msg=line i=%d\n", i); line != want {
				t.Fatalf("line %d is %q, want %q", i, line, want)
			}
		}
		note := fmt.Sprintf("level=WARN msg=\"log was blocked\" suppressed=%d\n", total-kept)
		if got[kept+1] != note || got[kept+2] != "level=INFO msg=last" {
			t.Errorf("it ends with %q, want %q and the last line", got[kept+1:], note)
		}
	})
}

// Close writes what waits, and gives up a log that stays blocked. Logging goes on meanwhile,
// without effect.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &gated{open: make(chan struct{})}
		q := Start(w, form)
		q.Logger().Info("in time")
		start := time.Now()
		q.Close()
		if d := time.Since(start); d != flushTime {
			t.Errorf("a blocked log was waited for for %v, want %v", d, flushTime)
		}
		q.Logger().Info("too late")
		close(w.open)
		<-q.done
		if got := w.lines(); len(got) != 1 || got[0] != "level=INFO msg=\"in time\"" {
			t.Errorf("got %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := &gated{open: make(chan struct{})}
		close(w.open)
		q := Start(w, form)
		q.Logger().Info("at the end")
		q.Close()
		if got := w.lines(); len(got) != 1 || !strings.Contains(got[0], "at the end") {
			t.Errorf("got %q", got)
		}
	})
}
