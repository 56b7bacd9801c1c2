package main

import (
	"errors"

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
