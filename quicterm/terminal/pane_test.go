package terminal

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A paneSession shows some output, and ends when it is told to.
type paneSession struct {
	*slowSession
	streams client.Streams
	sizes   []wire.Size
	end     chan struct{}
}

func (s *paneSession) Run(context.Context) (int, error) {
	s.streams.Replayed()
	s.streams.Stdout.Write([]byte("\x1b[?1049hready"))
	<-s.end
	return 3, nil
}

func (s *paneSession) Resize(size wire.Size) error { s.sizes = append(s.sizes, size); return nil }
func (s *paneSession) Sizing() wire.Sizing         { return wire.Sizing{} }
func (s *paneSession) Number() uint64              { return 0 }
func (s *paneSession) Exit() wire.ExitStatus       { return wire.ExitStatus{Status: 3} }

// A terminal in memory shows a session, passes on keys and sizes, and is left as it was.
func TestPane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		defer keys.Close()
		sizes := make(chan wire.Size)
		var out bytes.Buffer
		term := New(Config{Pane: &Pane{In: in, Out: &out, Sizes: sizes}, Escape: "none", Predict: predict.Never})
		s := &paneSession{slowSession: newSlowSession(100), streams: term.Streams(), end: make(chan struct{})}
		status := make(chan int, 1)
		go func() {
			code, err := term.RunPane(t.Context(), s, wire.Size{Cols: 80, Rows: 24})
			if err != nil {
				t.Error(err)
			}
			status <- code
		}()
		io.WriteString(keys, "typed~.")
		sizes <- wire.Size{Cols: 40, Rows: 12}
		synctest.Wait()
		if got := s.read(); got != "typed~." {
			t.Errorf("the session gets %q", got)
		}
		if len(s.sizes) != 1 || s.sizes[0].Cols != 40 {
			t.Errorf("the sizes are %v", s.sizes)
		}
		close(s.end)
		if code := <-status; code != 3 {
			t.Errorf("the status is %d", code)
		}
		if got := out.String(); !strings.Contains(got, "ready") || !strings.Contains(got, "\x1b[?1049l") {
			t.Errorf("the terminal gets %q", got)
		}
	})
}
