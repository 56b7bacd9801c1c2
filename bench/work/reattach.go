//go:build linux

package work

import (
	"os/exec"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/screen"
	emulator "github.com/quicterm/quicterm/quicterm/screen"
)

// Reattach runs vim in a session with 1000 rows of scrollback. It hangs up the client and
// attaches from a new terminal, again and again. It yields "screen", milliseconds from the
// start of a client until its terminal shows all that the first one showed: text, colours,
// cursor and modes; and "complete", whether the scrollback is the same too.
type Reattach struct {
	ownSessions
	Times int
}

// NeedsVim reports why vim cannot be run here, or nil.
func NeedsVim() error {
	_, err := exec.LookPath("vim")
	return err
}

func (w Reattach) Run(j *Job) []Figure {
	const fileSize = 150_000 // bytes: more lines than the scrollback has
	file, _ := logFile(j.T, fileSize)
	c := j.Clients[0]
	all := newScrollback(c)
	c.mustAnswer(j.T, "cat "+file+"\r", mark(2))
	c.mustAnswer(j.T, "vim --clean -n '+set filetype=c number' "+file+"\r", "Top") // of its ruler
	time.Sleep(Settle)
	var want emulator.Dump
	<-c.Screen.Watch(func(v screen.View) bool {
		want = v.Terminal.Dump()
		return true
	})
	wantRows := all.text()

	shown := Figure{Metric: "screen", Unit: "ms", Portable: true}
	complete := Figure{Metric: "complete", Portable: true}
	j.Begin()
	for range w.Times {
		c.Terminal.Cmd.Process.Signal(syscall.SIGHUP)
		<-c.Terminal.Closed()
		time.Sleep(Settle)
		c = NewClient(0, c.Machine, j.Host.To(c.Server, c.Port, "attach", nil))
		start := time.Now()
		c.Start(j.T)
		all = newScrollback(c)
		right := c.Screen.Watch(func(v screen.View) bool {
			return v.Terminal.Alternate() && reflect.DeepEqual(v.Terminal.Dump(), want)
		})
		at := screen.Await(right, start.Add(rig.Patience))
		if at.IsZero() {
			j.T.Fatal("a client that attaches shows another screen")
		}
		shown.add(at.Sub(start), j.since(start))
		same := 0.0
		if slices.Equal(all.text(), wantRows) {
			same = 1
		}
		complete.Values = append(complete.Values, same)
	}
	j.End()
	return []Figure{shown, complete}
}

// mustAnswer is answer for what is not measured.
func (c *Client) mustAnswer(t rig.T, text, mark string) {
	if _, shown := c.answer(text, mark, rig.Patience); shown.IsZero() {
		t.Fatalf("no answer to %q", text)
	}
}

// A scrollback is drawn with all output, of which a Screen leaves some out in a flood.
type scrollback struct {
	mu       sync.Mutex
	terminal *emulator.Screen
}

// newScrollback returns one that is drawn with what the client writes from now on.
func newScrollback(c *Client) *scrollback {
	s := &scrollback{terminal: screen.NewTerminal()}
	c.Screen.CopyTo(s)
	return s
}

func (s *scrollback) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.terminal.Write(b)
}

// text returns the rows, the newest first.
func (s *scrollback) text() (rows []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for y := range s.terminal.Lines() {
		rows = append(rows, s.terminal.Row(-1-y).Text())
	}
	return rows
}
