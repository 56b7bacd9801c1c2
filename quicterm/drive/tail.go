package drive

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Chunk is a part of a session's output.
type Chunk struct {
	From uint64 `json:"from"`           // its offset
	Next uint64 `json:"next"`           // the offset behind it: where to go on
	Lost uint64 `json:"lost,omitempty"` // bytes before From that were asked for and are not kept any more
	Text string `json:"text"`           // whole characters, except at the end of the output
}

// Tail calls f with the output of a session from an offset on, of one without a terminal with both of its streams.
// Offsets count what a session has put out since its beginning: the one that a Chunk ends with goes on after any outage, and after any end of this program, without
// a byte that is lost or comes twice. Without follow, Tail ends with the output that there is; with it, when the
// session's program has ended, with an [ExitError]. It ends with the first error of f.
func Tail(ctx context.Context, c *client.Client, name string, since uint64, follow bool, f func(Chunk) error) error {
	return tail(ctx, c, name, since, follow, func(wire.Sizing) {}, f)
}

// tail is Tail that also calls resized with the size of the terminal, first of all and when it changes.
func tail(
	ctx context.Context, c *client.Client, name string, since uint64, follow bool, resized func(wire.Sizing),
	f func(Chunk) error,
) error {
	var s *client.Session
	var held []byte // an unfinished character
	var lost uint64
	give := func(whole bool) error {
		n := len(held)
		for cut := 1; !whole && cut < utf8.UTFMax && cut <= len(held); cut++ {
			if b := held[len(held)-cut:]; utf8.RuneStart(b[0]) {
				if !utf8.FullRune(b) {
					n -= cut
				}
				break
			}
		}
		if n == 0 && lost == 0 {
			return nil
		}
		next := s.Offset() - uint64(len(held)-n)
		chunk := Chunk{From: next - uint64(n), Next: next, Lost: lost, Text: string(held[:n])}
		lost, held = 0, append(held[:0], held[n:]...)
		return f(chunk)
	}
	var failed error
	take := writerFunc(func(b []byte) (int, error) {
		if failed != nil { // what was under way when the session was left
			return len(b), nil
		}
		held = append(held, b...)
		if failed = give(false); failed != nil {
			s.Part()
		}
		return len(b), nil
	})
	s, err := c.Attach(ctx, &wire.Attach{
		Mode: wire.ModeAttach, Session: name, PTY: true, Role: wire.RoleWatch, Whole: true,
		Replay: wire.Replay{Kind: wire.ReplayFrom, From: since},
	}, client.Streams{
		Stdout: take, Stderr: take, Resized: resized,
		Lost: func(g client.Gap) { lost += g.Bytes },
		Replayed: func() {
			if !follow {
				s.Part()
			}
		},
	})
	if err != nil {
		return err
	}
	resized(s.Sizing())
	lost = s.Offset() - min(since, s.Offset())
	status, err := s.Run(ctx)
	if failed == nil {
		failed = give(true)
	}
	switch {
	case failed != nil:
		return failed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, client.ErrLeft):
		return nil
	case err != nil:
		return err
	case follow:
		return &ExitError{status}
	}
	return nil
}

// writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
