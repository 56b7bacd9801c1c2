//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// typeInAttach attaches to a session that there is, types a line with the request or after it, and returns what was
// printed until its echo, and how long that took from the request on.
func typeInAttach(w *world, req *wire.Attach, within bool) (printed string, took time.Duration, err error) {
	var out bytes.Buffer
	var s *Session
	start := time.Now()
	req.Mode, req.Session, req.PTY, req.Role = wire.ModeAttach, "world", true, wire.RoleShare
	req.Replay.Kind, req.Hints = wire.ReplayNone, wire.HintsProgram
	e := wire.Entry{ID: wire.EntryID(req.Instance), Text: []byte("line\n")}
	if within {
		req.Input = e.Append(nil)
	}
	s, err = w.tryAttach(req, Streams{
		Stdout: writerFunc(func(b []byte) (int, error) {
			took = time.Since(start)
			return out.Write(b)
		}),
		Hinted: func(wire.Hint) {},
	})
	if err != nil {
		return "", 0, err
	}
	w.kept.Go(func() {
		if !within {
			s.Enter(&e)
		}
		time.Sleep(10 * time.Second)
		s.Leave()
	})
	if _, err := s.Run(context.Background()); !errors.Is(err, ErrLeft) {
		return "", 0, err
	}
	return out.String(), took, nil
}

// inSession calls f in a world that has a session on a terminal.
func inSession(t *testing.T, link netem.Config, f func(w *world)) {
	inWorld(t, link, true, func(w *world) {
		w.program.SetProgress(true, true)
		s := w.attach(Streams{})
		w.kept.Go(func() {
			f(w)
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
	})
}

// Input in the request takes a round trip less than input after the answer, and is typed once.
func TestInputInAttach(t *testing.T) {
	const rtt = 200 * time.Millisecond
	inSession(t, netem.Config{Delay: rtt / 2}, func(w *world) {
		var took [2]time.Duration
		for i, within := range []bool{false, true} {
			printed, after, err := typeInAttach(w, &wire.Attach{Instance: wire.InstanceID{byte(i + 1)}}, within)
			if err != nil || printed != "line\n" {
				t.Errorf("within %v: printed %q, %v", within, printed, err)
			}
			took[i] = after
		}
		if saved := took[0] - took[1]; saved < rtt*9/10 {
			t.Errorf("input after the answer takes %v, in the request %v", took[0], took[1])
		}
	})
}

// Input in a request is typed once, also if the answer is lost and the client asks again.
func TestInputInAttachAgain(t *testing.T) {
	link := netem.Config{Delay: 30 * time.Millisecond}
	inSession(t, link, func(w *world) {
		w.program.SetModes(wire.Canonical, 1) // it prints nothing, and counts
		w.kept.Go(func() {
			time.Sleep(75 * time.Millisecond) // the handshake is complete, and the request under way
			w.net.Do(func() { w.ports[0].from.Set(netem.Config{Down: true}) })
		})
		req := &wire.Attach{Instance: wire.InstanceID{1}}
		_, _, err := typeInAttach(w, req, true)
		var brokenOff *BrokenOffError
		if got := w.program.Hidden(); !errors.As(err, &brokenOff) || got != 5 {
			t.Fatalf("the answer is lost: %v, and the program has got %d bytes", err, got)
		}
		w.set(link)
		if _, _, err := typeInAttach(w, req, true); err != nil {
			t.Error(err)
		}
		if got := w.program.Hidden(); got != 5 {
			t.Errorf("the program has got %d bytes, want 5", got)
		}
		w.program.SetModes(0, 1)
	})
}

// What a program types reaches the session's program, or the client is told why not. No other client is told.
func TestEnter(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
		w.program.SetProgress(true, true)
		writer := w.attach(Streams{Entered: func(wire.Entered) { t.Error("another client is told") }})
		w.kept.Go(func() {
			var out bytes.Buffer
			var outcomes []wire.Outcome
			s, err := w.tryAttach(
				&wire.Attach{Mode: wire.ModeAttach, Session: "world", PTY: true, Role: wire.RoleShare, Hints: wire.HintsProgram},
				Streams{
					Stdout: &out, Entered: func(e wire.Entered) { outcomes = append(outcomes, e.Outcome) },
					Hinted: func(wire.Hint) {},
				})
			if err != nil {
				t.Error(err)
				return
			}
			w.kept.Go(func() {
				defer s.Leave()
				for n, modes := range []wire.TerminalFlags{wire.Canonical | wire.Echo, wire.Canonical, 0} {
					w.program.SetModes(modes, 7)
					e := wire.Entry{ID: wire.EntryID{byte(n)}, Secret: true, Text: []byte("secret")}
					if got, err := s.Enter(&e); got != uint64(n+1) || err != nil {
						t.Errorf("frame %d, %v", got, err)
					}
					time.Sleep(time.Second)
				}
				if _, err := s.Enter(&wire.Entry{Text: make([]byte, wire.MaxEntry+1)}); err == nil {
					t.Error("more is accepted than an entry has")
				}
			})
			if _, err := s.Run(context.Background()); !errors.Is(err, ErrLeft) {
				t.Error(err)
			}
			if want := []wire.Outcome{wire.NotSecret, wire.Typed, wire.NotSecret}; !slices.Equal(outcomes, want) {
				t.Errorf("told %v, want %v", outcomes, want)
			}
			if got := w.program.Hidden(); got != len("secret") || out.Len() > 0 {
				t.Errorf("the program has got %d bytes, %q was printed", got, out.String())
			}
			writer.Write([]byte{4})
		})
		if status, err := writer.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
	})
}
