//go:build linux

package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// The next key is typed when the answer to the last is complete, so that a trace shows what
	// each key did: this long after the last output; if there is none; and if it never ends.
	answered   = 15 * time.Millisecond
	unanswered = 300 * time.Millisecond
	unechoed   = 60 * time.Millisecond // of keys that the terminal does not echo
	unwritten  = 2 * time.Second       // of characters that a script types, and expects to see
	maxAnswer  = 400 * time.Millisecond

	// settling is how long the program is watched after the last step.
	settling = 500 * time.Millisecond

	maxRecording = 10 * time.Minute
)

const term = "xterm-256color"

// A recorder is the client of a session.
type recorder struct {
	mu      sync.Mutex
	events  []event
	screen  *screen.Screen
	session *client.Session
	printed time.Time // the last output
	inputs  []input
	hint    wire.Hint // the last
	writes  bool      // the last key is expected to be echoed
	before  []byte    // what the session has printed before the program
	began   time.Time // when the program began
	over    bool
}

// An input is what was typed at once: the session has it in frames up to this one.
type input struct {
	at    time.Time
	frame uint64
}

type event struct {
	at   time.Time
	code asciicast.Code
	data []byte
}

// Record runs a script in an empty home directory, and writes a trace.
func Record(t rig.T, bin string, s *Script, home string, w io.Writer) {
	t.Helper()
	for _, setup := range s.Setup {
		if out, err := command(home, setup).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", setup, err, out)
		}
	}
	r := &recorder{screen: screen.New(s.Cols, s.Rows, screen.Limits{})}
	r.open(t, bin, s, home)
	for n, step := range s.steps {
		if err := r.do(step); err != nil {
			t.Fatalf("step %d: %v; the screen shows\n%s", n+1, err, r.text())
		}
	}
	time.Sleep(settling)
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	var cast bytes.Buffer
	if err := r.write(&cast, s); err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	if bytes.Contains(cast.Bytes(), []byte(home)) || host != "" && bytes.Contains(cast.Bytes(), []byte(host)) {
		t.Fatal("the trace has the name of this machine or of the home directory")
	}
	if _, err := w.Write(cast.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// command returns a shell command in the home directory.
func command(home, line string) *exec.Cmd {
	c := exec.Command("/bin/sh", "-c", line)
	c.Dir = home
	c.Env = environment(home)
	return c
}

// environment is the same everywhere.
func environment(home string) []string {
	return []string{"HOME=" + home, "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "TERM=" + term, "LANG=C.UTF-8",
		`PS1=\w $ `, "USER=user", "LOGNAME=user", "SHELL=/bin/bash", "TZ=UTC", "HISTFILE=" + home + "/.history"}
}

func (r *recorder) write(w io.Writer, s *Script) error {
	out, err := asciicast.NewWriter(w, asciicast.Header{Cols: s.Cols, Rows: s.Rows, Term: term})
	if err != nil {
		return err
	}
	for _, e := range r.events {
		at := time.Time{}.Add(e.at.Sub(r.began))
		switch e.code {
		case asciicast.Output:
			err = out.Output(at, e.data)
		case asciicast.Input:
			err = out.Input(at, e.data)
		default:
			err = out.Event(at, e.code, string(e.data))
		}
		if err != nil {
			return err
		}
	}
	return out.Close(time.Time{}.Add(time.Since(r.began)))
}

// add records an event now, with the lock held.
func (r *recorder) add(code asciicast.Code, data []byte) time.Time {
	now := time.Now()
	r.events = append(r.events, event{now, code, bytes.Clone(data)})
	return now
}

// do does a step, at its time.
func (r *recorder) do(s step) error {
	due := time.Now().Add(s.after)
	r.awaitAnswer()
	time.Sleep(time.Until(due))
	switch {
	case s.wait != nil:
		for deadline := time.Now().Add(rig.Patience); !s.wait.MatchString(r.text()); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				return fmt.Errorf("waited for %v", s.wait)
			}
		}
		return nil
	case s.marker != "":
		r.mu.Lock()
		defer r.mu.Unlock()
		r.add(asciicast.Marker, []byte(s.marker))
		return nil
	case s.resize[0] > 0:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.add(asciicast.Resize, fmt.Appendf(nil, "%dx%d", s.resize[0], s.resize[1]))
		r.screen.Resize(s.resize[0], s.resize[1])
		return r.session.Resize(wire.Size{Cols: uint16(s.resize[0]), Rows: uint16(s.resize[1])})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.input == "" && s.cursor == "" {
		return nil // a pause
	}
	if s.cursor != "" {
		s.input = "\x1b[" + s.cursor
		if r.screen.Dump().Modes.ApplicationCursorKeys {
			s.input = "\x1bO" + s.cursor
		}
	}
	r.writes = s.writes
	now := r.add(asciicast.Input, []byte(s.input))
	n, frame, err := r.session.TryWrite([]byte(s.input))
	r.session.Flush()
	if err == nil && n < len(s.input) {
		err = errors.New("the session takes no more input")
	}
	r.inputs = append(r.inputs, input{now, frame})
	return err
}

// awaitAnswer waits until the program has answered the last key.
func (r *recorder) awaitAnswer() {
	for {
		r.mu.Lock()
		printed, typed := r.printed, time.Time{}
		if n := len(r.inputs); n > 0 {
			typed = r.inputs[n-1].at
		}
		patience := unanswered
		if r.writes {
			patience = unwritten
		} else if r.hint.Terminal&(wire.Canonical|wire.Echo) == wire.Canonical {
			patience = unechoed
		}
		r.mu.Unlock()
		now := time.Now()
		if now.Sub(typed) > max(maxAnswer, patience) ||
			now.Sub(printed) > answered && (printed.After(typed) || now.Sub(typed) > patience) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	_, rows := r.screen.Size()
	for y := range rows {
		b.WriteString(r.screen.Row(y).Text() + "\n")
	}
	return b.String()
}

// Write takes the program's output.
func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || len(b) == 0 {
		return len(b), nil
	}
	n := len(b)
	if r.began.IsZero() {
		r.before = append(r.before, b...)
		at := bytes.Index(r.before, []byte(begins))
		if at < 0 {
			return n, nil
		}
		r.began = time.Now()
		if b = r.before[at+len(begins):]; len(b) == 0 {
			return n, nil
		}
	}
	r.screen.Write(b)
	r.printed = r.add(asciicast.Output, b)
	return n, nil
}
