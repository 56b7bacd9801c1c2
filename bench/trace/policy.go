package trace

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Policy predicts what keys show. The methods are those of predict.Predictor: the screen is what
// the client has of the output.
type Policy interface {
	Typed(now time.Time, s *screen.Screen, b []byte, frame uint64)
	Output(now time.Time, s *screen.Screen)
	Hinted(now time.Time, s *screen.Screen, h wire.Hint)
	Reset(now time.Time)
	SetRTT(srtt time.Duration)
	Overlay(now time.Time, s *screen.Screen) (o predict.Overlay, until time.Time)
	InDoubt() bool
}

// An EchoAcked policy learns, as mosh's client does, that a screen has the effect of the input up
// to a frame: the server says so when the program has had that for 50 ms.
type EchoAcked interface {
	EchoAcked(now time.Time, s *screen.Screen, frame uint64)
}

// A Reader policy gets the output, as VS Code's does, before the screen obeys it.
type Reader interface {
	Reads(now time.Time, s *screen.Screen, b []byte)
}

// None predicts nothing.
type None struct{}

func (None) Typed(time.Time, *screen.Screen, []byte, uint64) {}
func (None) Output(time.Time, *screen.Screen)                {}
func (None) Hinted(time.Time, *screen.Screen, wire.Hint)     {}
func (None) Reset(time.Time)                                 {}
func (None) SetRTT(time.Duration)                            {}
func (None) InDoubt() bool                                   { return false }
func (None) Overlay(time.Time, *screen.Screen) (predict.Overlay, time.Time) {
	return predict.Overlay{}, time.Time{}
}
