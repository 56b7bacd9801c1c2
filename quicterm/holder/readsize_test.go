package holder

import (
	"testing"

	"github.com/quicterm/quicterm/buffer"
)

// Frames of a pipe fill a segment of the ring, whatever the window.
func TestPipeReadSize(t *testing.T) {
	for _, c := range []struct{ window, frame int }{
		{0, 16 << 10}, {1<<20 - 1, 16 << 10}, {1 << 20, 32 << 10}, {2<<20 - 1, 32 << 10}, {2 << 20, 64 << 10}, {1 << 40, 64 << 10},
	} {
		if got := pipeReadSize(c.window); got != c.frame-buffer.Overhead {
			t.Errorf("a window of %d bytes: reads of %d, want %d", c.window, got, c.frame-buffer.Overhead)
		}
	}
}
