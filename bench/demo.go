//go:build linux

package main

import (
	"bytes"
	"os"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/demo"
	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
)

func demoCommand(group *measure.Group) *cobra.Command {
	var only bool
	c := &cobra.Command{
		Use:   "demo RECORDING IMAGE",
		Short: "Record a session whose WiFi drops, and draw it as an animated image; needs root",
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if !only {
				bin, err := os.MkdirTemp("", "bench")
				if err != nil {
					return err
				}
				defer os.RemoveAll(bin)
				if err := rig.Build(bin); err != nil {
					return err
				}
				var cast bytes.Buffer
				if err := group.Run(args[0], bin, func(t *measure.T) { demo.Record(t, &cast) }); err != nil {
					return err
				}
				if err := os.WriteFile(args[0], cast.Bytes(), 0o644); err != nil {
					return err
				}
			}
			cast, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			var image bytes.Buffer
			if err := demo.Draw(&image, bytes.NewReader(cast)); err != nil {
				return err
			}
			return os.WriteFile(args[1], image.Bytes(), 0o644)
		},
	}
	c.Flags().BoolVar(&only, "draw", false, "draw a recording that exists")
	return c
}
