//go:build linux

// Package demo records the session that the README shows, and draws it.
package demo

import (
	"io"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
)

const (
	// shortest is how long each frame is seen at least: what changes within it is one change.
	shortest = 30 * time.Millisecond

	// lastFrame is how long the end is seen, before the recording begins again.
	lastFrame = 3 * time.Second
)

// Draw writes a recording as an animated SVG image. A marker is the caption from then on.
func Draw(w io.Writer, recording io.Reader) error {
	header, events, err := asciicast.ReadAll(recording)
	if err != nil {
		return err
	}
	movie := newMovie(header.Cols, header.Rows)
	s := screen.New(header.Cols, header.Rows, screen.Limits{})
	var caption string
	for i, e := range events {
		switch e.Code {
		case asciicast.Output:
			s.Write([]byte(e.Data))
		case asciicast.Marker:
			caption = e.Data
		}
		if i+1 == len(events) || events[i+1].At-e.At >= shortest {
			movie.show(e.At, s, s.Title(), caption)
		}
	}
	return movie.write(w, lastFrame)
}
