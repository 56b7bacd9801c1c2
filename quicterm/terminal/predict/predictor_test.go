package predict_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// TestPredictionsEndWithTheirJudgement types at random into programs of all kinds.
func TestPredictionsEndWithTheirJudgement(t *testing.T) {
	keys := []string{
		"a", "b", " ", "x", "日", "é", "\x7f", "\x7f", "\r", "\x1b[D", "\x1b[C", "\x01", "\x05", "\x15", "\x17", "\x0b", "\t",
		"\x1b", "\x1b[A", "i", "cat\r", "sudo\r", "vim\r", "\x04", "\x1bb",
	}
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 15))
		w := shellWorld(t, time.Duration(1+rnd.IntN(400))*ms)
		w.hints = rnd.IntN(4) > 0
		for range 150 {
			w.press(keys[rnd.IntN(len(keys))])
			w.pass(time.Duration(rnd.IntN(200)) * ms)
		}
		w.settle()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzPredictor does what bytes say: they are keys, output, hints and all else.
func FuzzPredictor(f *testing.F) {
	f.Add([]byte("\x00a\x01a\x02\x00\x3b\x00b\x05\x03"))
	f.Add([]byte("\x00\x1b[D\x04\x01\x1b[?1049h\x00i\x02\x00\x00\x06\x07"))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := screen.New(12, 4, screen.Limits{})
		p := predict.New(predict.Always)
		now, frame, h := time.Unix(0, 0), uint64(0), wire.Hint{Terminal: wire.Shell}
		for len(in) > 1 {
			op, arg := in[0], in[1]
			n := min(1+int(arg%8), len(in)-1)
			data := bytes.ReplaceAll(in[1:1+n], []byte{0xd0}, []byte("x"))
			in = in[1+n:]
			now = now.Add(time.Duration(arg) * ms)
			switch op % 8 {
			case 0, 1:
				frame++
				p.Typed(now, s, data, frame*uint64(op%2))
			case 2, 3:
				s.Write(data)
				p.Output(now, s)
			case 4:
				h.Terminal, h.In, h.Context = wire.TerminalFlags(arg), min(frame, h.In+uint64(op>>3)), uint16(op>>6)
				p.Hinted(now, s, h)
			case 5:
				s.Resize(2+int(arg%20), 1+int(arg>>5))
				p.Reset(now)
			case 6:
				p.SetRTT(time.Duration(arg) * ms)
				p.SetOffline(op > 127)
			case 7:
				now = now.Add(time.Duration(arg) * time.Second)
			}
			checkOverlay(t, p, s, now)
			if op%8 == 4 && h.Terminal&(wire.Canonical|wire.Echo) == wire.Canonical {
				frame++
				p.Typed(now, s, []byte("\u0416"), frame)
				if strings.Contains(fmt.Sprintf("%+v", *p), fmt.Sprintf("r:%d", '\u0416')) {
					t.Fatal("a character of a secret is kept")
				}
			}
		}
	})
}

// checkOverlay fails unless the cells to draw are on the screen.
func checkOverlay(t *testing.T, p *predict.Predictor, s *screen.Screen, now time.Time) {
	t.Helper()
	o, until := p.Overlay(now, s)
	if !until.IsZero() && !until.After(now) {
		t.Fatalf("it changes at %v, which is not after %v", until, now)
	}
	cols, rows := s.Size()
	for _, c := range o.Cells {
		if c.X < 0 || c.Y < 0 || c.Y >= rows || c.Width < 1 || c.X+c.Width > cols || s.Row(c.Y).Cell(c.X).Text == c.Text {
			t.Fatalf("drawn is %+v on a screen of %d x %d", c, cols, rows)
		}
	}
	if c := o.Cursor; c != nil && (c.X < 0 || c.Y < 0 || c.X >= cols || c.Y >= rows) {
		t.Fatalf("the cursor is at %+v on a screen of %d x %d", c, cols, rows)
	}
}

// BenchmarkKey is the cost of a key at the end of a long line, with twenty keys that are not answered.
func BenchmarkKey(b *testing.B) {
	s := screen.New(200, 50, screen.Limits{})
	s.Write([]byte("\x1b[?2004h$ "))
	p := predict.New(predict.Always)
	p.SetRTT(300 * ms)
	now := time.Unix(0, 0)
	flags := wire.Shell
	p.Output(now, s)
	p.Hinted(now, s, wire.Hint{Terminal: flags})
	const ahead = 20
	frame := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		frame++
		now = now.Add(15 * ms)
		p.Typed(now, s, []byte("x"), frame)
		p.Overlay(now, s)
		if frame > ahead {
			s.Write([]byte("x"))
			p.Output(now, s)
			p.Hinted(now, s, wire.Hint{Terminal: flags, In: frame - ahead - 2})
			p.Overlay(now, s)
		}
		if x, _ := s.Cursor(); x > 150 {
			s.Write([]byte("\r\x1b[K$ "))
			p.Reset(now)
			frame = 0
			p.Hinted(now, s, wire.Hint{Terminal: flags, In: frame})
		}
	}
}
