//go:build linux

package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// A flood is lines with a number and text that zstd cannot make much of.
const (
	floodText = 48 // bytes before base64
	floodLine = 8 + 1 + floodText/3*4
)

// floodCommand is the program that floods in a session.
func floodCommand() *cobra.Command {
	var rate int
	c := &cobra.Command{
		Use:    "flood",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return flood(os.Stdout, rate)
		},
	}
	c.Flags().IntVar(&rate, "rate", 0, "bytes per second, 0 for as fast as can be")
	return c
}

func flood(out io.Writer, rate int) error {
	const block = 4096 // as stdio writes
	w := bufio.NewWriterSize(out, block)
	random := rand.NewChaCha8([32]byte{})
	start := time.Now()
	var raw [floodText]byte
	for n := 1; ; n++ {
		random.Read(raw[:])
		if _, err := fmt.Fprintf(w, "%08d %s\n", n, base64.StdEncoding.EncodeToString(raw[:])); err != nil {
			return err
		}
		const often = 64 // lines
		if rate > 0 && n%often == 0 {
			due := time.Duration(float64(n*(floodLine+1)) / float64(rate) * float64(time.Second))
			time.Sleep(time.Until(start.Add(due)))
		}
	}
}
