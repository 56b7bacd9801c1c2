package driver

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A long write, whose frames have no short form, moves on the number from which the next short form
// follows.
func TestShortFormAfterLongWrite(t *testing.T) {
	frames := func(from, n, size int) (b []byte) {
		for i := range n {
			b = buffer.AppendFrame(b, buffer.Frame{Seq: uint64(from + i), Type: 2, Payload: make([]byte, size)})
		}
		return b
	}
	var out outgoing
	var sent []byte
	for _, b := range [][]byte{frames(7, 1, 10), frames(9, 20, 100), frames(8, 1, 10)} { // 8 was on another carrier that has ended
		sent = append(sent, out.next(time.Now(), b)...)
	}
	r := buffer.NewReader(bytes.NewReader(sent))
	var last uint64
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal("after frame", last, err)
		}
		last = f.Seq
	}
	if last != 8 {
		t.Errorf("the last frame is %d, want 8", last)
	}
}
