//go:build linux

package main

import (
	"bytes"
	"hash/fnv"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/record"
	"github.com/quicterm/quicterm/bench/rig"
)

func recordCommand(group *measure.Group) *cobra.Command {
	return &cobra.Command{
		Use:   "record SCRIPT TRACE",
		Short: "Type a script in a session, and record what bench predict replays",
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			seed := fnv.New64a()
			seed.Write([]byte(filepath.Base(args[0])))
			script, err := record.Parse(bytes.NewReader(text), seed.Sum64())
			if err != nil {
				return err
			}
			bin, err := os.MkdirTemp("", "bench")
			if err != nil {
				return err
			}
			defer os.RemoveAll(bin)
			if err := rig.Build(bin); err != nil {
				return err
			}
			var cast bytes.Buffer
			err = group.Run(args[0], bin, func(t *measure.T) {
				home, err := os.MkdirTemp("", "home")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(home) })
				record.Record(t, bin, script, home, &cast)
			})
			if err != nil {
				return err
			}
			return os.WriteFile(args[1], cast.Bytes(), 0o644)
		},
	}
}
