// Package demo draws the recorded session that the README shows.
package demo

import (
	"bytes"
	"flag"
	"io"
	"os"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
)

var update = flag.Bool("update", false, "draw the image again, instead of comparing it")

// The image in the README is that of the recording beside it, and small.
func TestImage(t *testing.T) {
	const name, maxBytes = "../../docs/demo.svg", 150_000
	recording, err := os.Open("../../docs/demo.cast")
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Close()
	var image bytes.Buffer
	if err := draw(&image, recording); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, image.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, image.Bytes()) {
		t.Errorf("%s is not that of the recording (%v): make demo-svg", name, err)
	}
	if image.Len() > maxBytes {
		t.Errorf("%s has %d bytes, want at most %d", name, image.Len(), maxBytes)
	}
}

const (
	// shortest is how long each frame is seen at least: what changes within it is one change.
	shortest = 30 * time.Millisecond

	// lastFrame is how long the end is seen, before the recording begins again.
	lastFrame = 3 * time.Second
)

// draw writes a recording as an animated SVG image. A marker is the caption from then on.
func draw(w io.Writer, recording io.Reader) error {
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
