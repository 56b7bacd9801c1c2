package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// state returns all that a screen is, but for its scrollback.
func state(t *testing.T, s *screen.Screen) string {
	t.Helper()
	s.ClearHistory()
	b, err := json.Marshal(s)
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
		f := newFollower(func() {})
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
			if ground := f.ground(); ground != want.Ground() {
				t.Fatalf("ground %v, want %v", ground, want.Ground())
			}
			f.ask(func(s *screen.Screen) {
				if got, want := state(t, s), state(t, want); got != want {
					t.Fatalf("the screen is\n%s, want\n%s", got, want)
				}
			})
		}
		f.stop()
	}
}

// Output is read soon, and not at once.
func TestFollowerReadsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int64
		f := newFollower(func() { read.Add(1) })
		want := func(times int64, left string) {
			t.Helper()
			synctest.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			if read.Load() != times || string(f.unread) != left {
				t.Errorf("read %d times, %q is left; want %d, %q", read.Load(), f.unread, times, left)
			}
		}
		f.Write([]byte("key"))
		time.Sleep(readEchoAfter / 2)
		f.Write([]byte("s"))
		want(0, "keys")
		time.Sleep(readEchoAfter / 2)
		want(1, "")
		for i, output := range []string{"\x1b[?25l", strings.Repeat("x", maxEcho+1)} {
			f.Write([]byte("key"))
			f.Write([]byte(output))
			time.Sleep(readAfter / 2)
			f.Write([]byte("s"))
			want(int64(1+i), "key"+output+"s")
			time.Sleep(readAfter / 2)
			want(int64(2+i), "")
		}
		f.Write(bytes.Repeat([]byte("x"), maxUnread+1))
		if len(f.unread) > 0 {
			t.Errorf("%d bytes wait", len(f.unread))
		}
		f.stop()
	})
}

// No timer fires for output that was read at once, unless another undo follows from it.
func TestFollowerSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int64
		f := newFollower(func() { changes.Add(1) })
		read := func(output string, want int64) {
			t.Helper()
			f.Write([]byte(output))
			f.ground()
			time.Sleep(2 * readEchoAfter)
			if synctest.Wait(); changes.Load() != want {
				t.Errorf("after %q: changed %d times, want %d", output, changes.Load(), want)
			}
		}
		read("first", 0)
		read("key", 0)
		read("\x1b[?2004h", 1)
		read("\x1b[?2004l\x1b[?2004h", 1)
		read("\x1b[?2004l", 2)
		f.stop()
	})
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
			d.seen.stop()
		})
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func TestOnlyMoves(t *testing.T) {
	for output, want := range map[string]bool{
		"": true, "a": true, "\b \b": true, "a\x1b[1;1H<3>\x1b[12;40H": true, "\x1b[K\r\n": true, "é": true,
		"\x1b[31m": false, "a\x1b[?1049h": false, "\x1b": false, "a\x1b[1;": false, "\x1b7": false, "\x1b[H\x1b]0;": false,
		"\x0e": false, "\u009b?1h": false, "\x1b[>1u": false,
	} {
		if onlyMoves([]byte(output)) != want {
			t.Errorf("%q: %v", output, !want)
		}
	}
}

// The rest of a control sequence is read as soon as its beginning.
func TestFollowerReadsSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int64
		f := newFollower(func() { read.Add(1) })
		defer f.stop()
		for i, part := range []string{"\x1b[?", "10", "49h"} {
			f.Write([]byte(part))
			time.Sleep(readAfter)
			if synctest.Wait(); read.Load() != int64(i+1) {
				t.Errorf("%q is not read after %v", part, readAfter)
			}
		}
	})
}
