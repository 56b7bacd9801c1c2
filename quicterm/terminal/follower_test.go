package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// state returns all that a screen is, but for its scrollback.
func state(t *testing.T, s *screen.Screen) string {
	t.Helper()
	s.ClearHistory()
	b, err := json.Marshal(s.Dump())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A follower that is asked has read everything, however large the output is, and however it
// is cut. Of a flood of lines it may read the end alone.
func TestFollower(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	parts := []string{
		"a line of text\r\n", "größe 終了\r\n", "\x1b[31mred\x1b[m", "\x1b]2;title\a", "\x1b(0qqq\x1b(B", "\x0elqk\x0f",
		strings.Repeat("\x1b[01;34mblue\x1b[0m \x1b[1;41mred\x1b[K\x1b[m\r\n\x1b[3m", 1500), strings.Repeat("\x1b[1mn\x1b[22mo\r\n", 1500),
		strings.Repeat("of a flood\r\n", 1500), strings.Repeat("of a long line ", 1200) + "\r\n", "\x1b[2J\x1b[H",
		"\x1b[?1049h", "\x1b[?1049l", "\u009b1m", "\x1b]2;" + strings.Repeat("no end ", 10_000), "\x1b\\", "\xc3",
	}
	for range 5 {
		f := newFollower()
		want := newScreen(wire.Size{Cols: 80, Rows: 24})
		for range 300 {
			b := []byte(parts[rng.IntN(len(parts))])
			for len(b) > 0 {
				n := min(len(b), 1+rng.IntN(64<<10))
				f.Write(b[:n])
				want.Write(b[:n])
				b = b[n:]
			}
			if rng.IntN(10) > 0 {
				continue
			}
			if ground := f.now().Ground(); ground != want.Ground() {
				t.Fatalf("ground %v, want %v", ground, want.Ground())
			}
			if got, want := state(t, f.now()), state(t, want); got != want {
				t.Fatalf("the screen is\n%s, want\n%s", got, want)
			}
		}
	}
}

// What waits to be read is bounded.
func TestFollowerIsBounded(t *testing.T) {
	f := newFollower()
	for range 3 {
		f.Write(bytes.Repeat([]byte("x"), maxUnread))
		if len(f.unread) > maxUnread {
			t.Errorf("%d bytes wait", len(f.unread))
		}
	}
}

// BenchmarkShow is the cost of output that a display shows.
func BenchmarkShow(b *testing.B) {
	line := "-rw-r--r-- 1 root root 1234 Nov 22 15:00 some-file-name.go and more text\r\n"
	for name, line := range map[string]string{"text": line, "colour": "\x1b[01;34mdirectory\x1b[0m  " + line} {
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			d, _ := live()
			d.out = discard{}
			chunk := []byte(strings.Repeat(line, 60_000/len(line)))
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				d.Write(chunk)
			}
		})
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
