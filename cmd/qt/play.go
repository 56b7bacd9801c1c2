package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func playCommand() *cobra.Command {
	var speed speedFlag = 1
	var idle seconds
	c := &cobra.Command{
		Use:   "play [flags] file",
		Short: "Play a recording of a terminal",
		Long: `Play a recording of a terminal, an asciicast file of version 2 or 3, such as
qt record and asciinema make. The file - is the standard input. Your terminal
keeps its size: make it as large as the recorded one first. If the recorded one
changes its size, its screen is drawn from then on, or the part around the
cursor.

While it plays, these keys work:
  space   pause, and go on
  .       in a pause: show what comes next
  ] [     go to the next, the previous marker
  + -     play faster, slower
  q       quit, as does Ctrl-C`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			err := playFile(c.Context(), args[0], &player{speed: float64(speed), idle: time.Duration(idle)})
			if err == nil || errors.As(err, new(*signalError)) {
				return err
			}
			return fmt.Errorf("%s: %w", args[0], reason(err))
		},
	}
	c.Flags().VarP(&speed, "speed", "s", "play this many times as fast")
	c.Flags().VarP(&idle, "idle", "i", "shorten pauses to so many `seconds` (default: as the recording says)")
	return c
}

// playFile plays a file on our terminal.
func playFile(ctx context.Context, name string, p *player) (err error) {
	file := os.Stdin
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return err
		}
		defer file.Close()
	}
	if p.events, err = asciicast.NewReader(file); err != nil {
		return err
	}
	header := p.events.Header()
	if p.idle == 0 {
		p.idle = header.IdleLimit
	}
	ctx, stop := untilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	if !term.IsTerminal(int(os.Stdout.Fd())) {
		p.out = os.Stdout
		return p.play(ctx)
	}
	recorded := wire.Size{Cols: uint16(header.Cols), Rows: uint16(header.Rows)}
	view, err := terminal.NewViewer(os.Stdin, os.Stdout, recorded, partShown)
	if err != nil {
		return err
	}
	defer view.Close()
	if size := view.Size(); int(size.Cols) < header.Cols || int(size.Rows) < header.Rows {
		fmt.Fprintf(view, recordingIsLarger+"\r\n", header.Cols, header.Rows, size.Cols, size.Rows)
	}
	p.out, p.keys, p.resize = view, view.Keys(), view.Resize
	if _, err := file.Seek(0, io.SeekCurrent); err == nil {
		p.rewind = func() (*asciicast.Reader, error) {
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return nil, err
			}
			if err := view.Clear(); err != nil {
				return nil, err
			}
			return asciicast.NewReader(file)
		}
	}
	return p.play(ctx)
}

// reason returns an error of a file without its operation and name.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// A speedFlag is the value of a flag.
type speedFlag float64

func (f *speedFlag) Set(s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= minSpeed && v <= maxSpeed) {
		return fmt.Errorf("it must be a number from %v to %v", minSpeed, maxSpeed)
	}
	*f = speedFlag(v)
	return nil
}

func (f *speedFlag) String() string { return strconv.FormatFloat(float64(*f), 'g', -1, 64) }

func (f *speedFlag) Type() string { return "number" }

// seconds is the value of a flag.
type seconds time.Duration

func (f *seconds) Set(s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v > 0 && v <= math.MaxInt32) {
		return errors.New("it must be a number of seconds, above 0")
	}
	*f = seconds(v * float64(time.Second))
	return nil
}

func (f *seconds) String() string { return "" }

func (f *seconds) Type() string { return "seconds" }
