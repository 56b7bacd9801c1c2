//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A client that goes on at the offset at which another one has left gets every byte once, also when the terminal's size
// changes meanwhile.
func TestOffset(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
		var all bytes.Buffer
		writer := w.attach(Streams{Stdout: &all})
		w.kept.Go(func() {
			for range 40 {
				writer.Write([]byte("some text "))
				time.Sleep(45 * time.Millisecond)
				writer.Resize(wire.Size{Cols: uint16(80 + all.Len()), Rows: 24})
				time.Sleep(45 * time.Millisecond)
			}
			time.Sleep(time.Minute)
			writer.Write([]byte{4})
		})
		w.kept.Go(func() {
			time.Sleep(time.Second)
			var got bytes.Buffer
			sizes := 0
			for offset, parts := uint64(1), 0; got.Len() < 400; parts++ {
				if parts > 100 {
					t.Errorf("only %q", got.String())
					return
				}
				req := &wire.Attach{Mode: wire.ModeAttach, Session: "world", Role: wire.RoleWatch, Whole: true}
				req.Replay.Kind, req.Replay.From = wire.ReplayFrom, offset
				var s *Session
				s, err := w.tryAttach(req, Streams{
					Stdout: writerFunc(func(b []byte) (int, error) {
						if begins := s.Offset() - uint64(len(b)); begins < offset {
							t.Errorf("%q at %d, behind %d", b, begins, offset)
						}
						offset = s.Offset()
						s.Leave()
						return got.Write(b)
					}),
					Resized: func(wire.Sizing) {
						sizes++
						offset = s.Offset()
						s.Leave()
					},
					Lost: func(g Gap) { t.Errorf("lost %+v", g) },
				})
				if err != nil {
					t.Error(err)
					return
				}
				if begins := s.Offset(); begins != offset && offset > 1 {
					t.Errorf("begins at %d, want %d", begins, offset)
				}
				if _, err := s.Run(context.Background()); !errors.Is(err, ErrLeft) || s.Offset() < offset {
					t.Errorf("ended at %d behind %d: %v", s.Offset(), offset, err)
				}
				offset = s.Offset()
			}
			if sizes < 10 || got.String() != all.String() {
				t.Errorf("%d sizes, and %d bytes %q", sizes, got.Len(), got.String())
			}
		})
		if status, err := writer.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
	})
}
