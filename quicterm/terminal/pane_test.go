package terminal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
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
	sizing  wire.Sizing
	sizes   []wire.Size
	taken   []wire.Size
	end     chan struct{}
}

func (s *paneSession) Run(context.Context) (int, error) {
	s.streams.Replayed()
	s.streams.Stdout.Write([]byte("\x1b[?1049hready"))
	<-s.end
	return 3, nil
}

func (s *paneSession) Resize(size wire.Size) error   { s.sizes = append(s.sizes, size); return nil }
func (s *paneSession) TakeSize(size wire.Size) error { s.taken = append(s.taken, size); return nil }
func (s *paneSession) Sizing() wire.Sizing           { return s.sizing }
func (s *paneSession) Number() uint64                { return 0 }
func (s *paneSession) Exit() wire.ExitStatus         { return wire.ExitStatus{Status: 3} }

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

// A pane that follows has the session's size before the output for it, and takes it only when asked to.
func TestPaneFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		defer keys.Close()
		sizes, take := make(chan wire.Size), make(chan struct{})
		var shown strings.Builder
		pane := &Pane{In: in, Out: &shown, Sizes: sizes, Take: take, Follow: func(s wire.Sizing, own bool) {
			fmt.Fprintf(&shown, "<%dx%d %v>", s.Cols, s.Rows, own)
		}}
		term := New(Config{Pane: pane, Escape: "none", Predict: predict.Never})
		s := &paneSession{slowSession: newSlowSession(100), streams: term.Streams(), end: make(chan struct{})}
		large, small := wire.Size{Cols: 200, Rows: 50}, wire.Size{Cols: 45, Rows: 30}
		s.sizing = wire.Sizing{Size: large, Owner: 7}
		done := make(chan struct{})
		go func() {
			defer close(done)
			term.RunPane(t.Context(), s, wire.Size{})
		}()
		synctest.Wait()
		sizes <- small
		take <- struct{}{}
		synctest.Wait()
		if len(s.sizes) != 1 || s.sizes[0] != small || len(s.taken) != 1 || s.taken[0] != small {
			t.Errorf("sizes %v, taken %v", s.sizes, s.taken)
		}
		s.streams.Stdout.Write([]byte("large"))
		s.streams.Resized(wire.Sizing{Size: small, Owner: 0})
		s.streams.Stdout.Write([]byte("small"))
		s.streams.Resized(wire.Sizing{Size: large, Owner: 7})
		s.streams.Began([]byte("large again"))
		close(s.end)
		<-done
		if want := regexp.MustCompile(`(?s)^\x1b\[22;0t<200x50 false>.*ready.*large<45x30 true>small<200x50 false>.*large again`); !want.MatchString(shown.String()) {
			t.Errorf("it shows %q", shown.String())
		}
	})
}
