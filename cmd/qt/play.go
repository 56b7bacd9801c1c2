package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// minIdle and maxIdle bound the flag --idle, in seconds.
const minIdle, maxIdle = 0.001, 86400.0

func playCommand() *cobra.Command {
	speed, idle := 1.0, 0.0
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
			err := playFile(c.Context(), args[0], &player{speed: speed, idle: time.Duration(idle * float64(time.Second))})
			if err == nil || errors.As(err, new(*reach.SignalError)) {
				return err
			}
			return fmt.Errorf("%s: %w", args[0], reason(err))
		},
	}
	c.Flags().VarP(number(&speed, "number", "1", minSpeed, maxSpeed), "speed", "s", "play this many times as fast")
	c.Flags().VarP(number(&idle, "seconds", "", minIdle, maxIdle), "idle", "i",
		"shorten pauses to so many `seconds` (default: as the recording says)")
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
	ctx, stop := reach.UntilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
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
