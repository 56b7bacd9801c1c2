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
