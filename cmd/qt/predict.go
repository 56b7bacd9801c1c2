package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/terminal/predict"
)

// predictModes are the values of the setting predict.
var predictModes = map[string]predict.Mode{
	"adaptive": predict.Adaptive,
	"always":   predict.Always,
	"never":    predict.Never,
}

func addPredictFlag(c *cobra.Command, opts *options) {
	c.Flags().Var((*predictMode)(&opts.predict), "predict",
		"when keys show before the server answers: `adaptive` (where that takes long), always or never (default: the setting predict)")
}

// A predictMode is the value of a flag.
type predictMode string

func (m *predictMode) Set(s string) error {
	if _, ok := predictModes[s]; !ok {
		return errors.New("it must be adaptive, always or never")
	}
	*m = predictMode(s)
	return nil
}

func (m *predictMode) String() string { return "" }

func (m *predictMode) Type() string { return "adaptive" }

// Predictions says when keys show before the server answers, and how often that was right.
func (messages) Predictions(m predict.Mode, s predict.Score) string {
	if m == predict.Never {
		return "predictions: off"
	}
	when := "on a slow path"
	if m == predict.Always {
		when = "always"
	}
	if s.Shown == 0 {
		return "predictions: " + when + ", none so far"
	}
	return fmt.Sprintf("predictions: %s; %d of %d keys shown at once, %d wrong", when, s.Shown, s.Keys, s.Wrong)
}
