package session

import (
	"testing"

	"github.com/quicterm/quicterm/buffer"
)

// What is sent while a secret is typed has the size of its class, and begins with a ping that says so.
func TestFill(t *testing.T) {
	for n := range 1100 {
		b := make([]byte, n)
		for _, p := range []Padding{askPadded, answersPadded} {
			got := p.Fill(b)
			if p == answersPadded && n > obscuredSize-buffer.Overhead-1 {
				if len(got) != n {
					t.Fatalf("an answer with output of %d bytes has %d", n, len(got))
				}
				continue
			}
			f, size, err := buffer.Parse(got)
			if err != nil || f.Type != ping || (f.Payload[0] == pingObscured) != (p == askPadded) || len(got)-size != n {
				t.Fatalf("%d bytes are filled to %d: %v, %v", n, len(got), f, err)
			}
			if n < maxFilled-buffer.Overhead && len(got)%obscuredSize != 0 || len(got) > max(maxFilled, n+buffer.Overhead+1) {
				t.Fatalf("%d bytes are filled to %d", n, len(got))
			}
		}
	}
	if b := make([]byte, 7); len(NoPadding.Fill(b)) != 7 {
		t.Error("what is no secret was filled")
	}
}
