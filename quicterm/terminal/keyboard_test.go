package terminal

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A slowSession has room for some bytes of input, of which the test reads.
type slowSession struct {
	mu     sync.Mutex
	input  bytes.Buffer
	size   int // room for input
	room   *sync.Cond
	state  client.State
	events []string
	over   bool
}

func newSlowSession(size int) *slowSession {
	s := &slowSession{size: size, state: client.Live}
	s.room = sync.NewCond(&s.mu)
	return s
}

func (s *slowSession) Run(context.Context) (int, error) { panic("not run") }
func (s *slowSession) Exit() wire.ExitStatus            { panic("not run") }
func (s *slowSession) Resize(wire.Size) error           { panic("no terminal") }
func (s *slowSession) TakeSize(wire.Size) error         { panic("no terminal") }
func (s *slowSession) Sizing() wire.Sizing              { panic("no terminal") }
func (s *slowSession) Number() uint64                   { panic("no terminal") }

func (s *slowSession) TryWrite(b []byte) (n int, frame uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return 0, 0, io.ErrClosedPipe
	}
	n = min(len(b), s.size-s.input.Len())
	s.input.Write(b[:n])
	return n, 0, nil
}

func (s *slowSession) Flush() {}

func (s *slowSession) Write(b []byte) (int, error) {
	for written := 0; written < len(b); {
		n, _, err := s.TryWrite(b[written:])
		if err != nil {
			return written, err
		}
		written += n
		s.mu.Lock()
		for !s.over && s.input.Len() == s.size {
			s.room.Wait()
		}
		s.mu.Unlock()
	}
	return len(b), nil
}

func (s *slowSession) event(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, name)
	if name == "leave" {
		s.over = true
		s.room.Broadcast()
	}
}

func (s *slowSession) AskHint()           {}
func (s *slowSession) RTT() time.Duration { return 0 }
func (s *slowSession) CloseWrite() error  { s.event("close"); return nil }
func (s *slowSession) Skip() error        { s.event("skip"); return nil }
func (s *slowSession) Leave()             { s.event("leave") }
func (s *slowSession) Status() client.Status {
	return client.Status{Name: "test", Link: client.LinkState{State: s.state}}
}

// read is the program reading all input that has come.
func (s *slowSession) read() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.room.Broadcast()
	b := s.input.String()
	s.input.Reset()
	return b
}

func (s *slowSession) wantEvents(t *testing.T, why, want string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.events, " "); got != want {
		t.Errorf("%s: the session saw %q, want %q", why, got, want)
	}
}

// typist is a keyboard under test.
type typist struct {
	t       *testing.T
	session *slowSession
	shown   *bytes.Buffer
	keys    *io.PipeWriter // nil before the first is typed
	*keyboard
}

func newTyping(t *testing.T, room, queue int) *typist {
	s := newSlowSession(room)
	d, shown := live()
	k := newKeyboard(s, d, nil, Config{Escape: "~", Status: func(st client.Status) string { return "status of " + st.Name }})
	k.max = queue
	return &typist{t, s, shown, nil, k}
}

// typed returns when the keyboard has read b. It must not wait for the session.
func (k *typist) typed(b string) {
	if k.keys == nil {
		terminal, keys := io.Pipe()
		k.keys = keys
		go k.read(terminal, false)
	}
	k.keys.Write([]byte(b))
	synctest.Wait()
}

func (k *typist) wantShown(why, want string) {
	k.t.Helper()
	synctest.Wait()
	k.display.mu.Lock()
	defer k.display.mu.Unlock()
	if got := k.shown.String(); got != want {
		k.t.Errorf("%s: shown %q, want %q", why, got, want)
	}
	k.shown.Reset()
}

func (k *typist) end() {
	k.session.event("leave")
	if k.keys != nil {
		k.keys.Close()
	}
	k.close()
}

// Escapes work when the program reads nothing and all room for input is taken.
func TestEscapesOfStoppedProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTyping(t, 10, 20)
		defer k.end()
		k.typed(strings.Repeat("x", 30))
		k.wantShown("as much as there is room for", "")
		k.typed("x\r")
		k.wantShown("more", "\r\n[qt: the program does not read its input: 20 B are waiting, further input is dropped\a]\r\n")
		k.typed("~?")
		k.wantShown("help", "\r\n[qt]\r\n"+strings.ReplaceAll(helpText(Config{Role: wire.RoleWriter}, '~'), "\n", "\r\n")+"\r\n")
		k.typed("~#")
		k.wantShown("status", "\r\n[qt: status of test]\r\n")
		k.typed("~.")
		k.session.wantEvents(t, "the end", "leave")
		k.wantShown("the end", "")
	})
}

// The escape for predictions ends and begins them. Without a terminal there are none.
func TestPredictionEscape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTyping(t, 10, 20)
		defer k.end()
		k.typed("~*")
		k.wantShown("no predictions", "")
		if got := k.session.read(); got != "~*" {
			t.Errorf("the program read %q, want what was typed", got)
		}
		k.typed("\r")
		k.display.predict(&guesser{}, predict.Always, func() time.Duration { return 0 }, func() {})
		k.typed("~*~#~*")
		k.wantShown("off, and on again", "\r\n[qt: predictions: off]\r\n\r\n[qt]\r\nstatus of test\r\n"+
			"predictions: off\r\n\r\n[qt: predictions: always, none so far]\r\n")
		k.display.restore(false)
	})
}

// Input waits in order for a program that reads later.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTyping(t, 10, 1000)
		defer k.end()
		var want, got strings.Builder
		for i := range 50 {
			part := strings.Repeat(string(rune('a'+i%26)), 13)
			want.WriteString(part)
			k.typed(part)
		}
		k.typed("\r~>")
		want.WriteString("\r")
		k.session.wantEvents(t, "before the input is read", "")
		for got.Len() < want.Len() {
			got.WriteString(k.session.read())
			synctest.Wait()
		}
		if got.String() != want.String() {
			t.Errorf("the program read %q, want %q", got.String(), want.String())
		}
		k.session.wantEvents(t, "after the input", "skip")
		k.typed("z")
		if got := k.session.read(); got != "z" {
			t.Errorf("the program read %q after the queue was empty", got)
		}
		k.wantShown("all of it", "")
	})
}

// Dropped input is counted, and the count is shown when there is room again.
func TestInputDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTyping(t, 10, 20)
		defer k.end()
		k.typed(strings.Repeat("x", 10))
		k.typed(strings.Repeat("y", 20))
		k.wantShown("at the limit", "")
		k.typed("z")
		k.typed("zz")
		k.wantShown("past the limit", "\r\n[qt: the program does not read its input: 20 B are waiting, further input is dropped\a]\r\n")
		var got strings.Builder
		for range 3 {
			got.WriteString(k.session.read())
			synctest.Wait()
		}
		if want := strings.Repeat("x", 10) + strings.Repeat("y", 20); got.String() != want {
			t.Errorf("the program read %q, want %q", got.String(), want)
		}
		k.wantShown("room again", "\r\n[qt: the program reads its input again; 3 B were dropped]\r\n")
		k.typed("a")
		synctest.Wait()
		if got := k.session.read(); got != "a" {
			t.Errorf("the program read %q, want a", got)
		}
	})
}

// A file as the input waits for the program and loses nothing; its end follows it. A terminal
// that ends is gone.
func TestEndOfInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const input = "input, longer than the room and the queue"
		k := newTyping(t, 10, 10)
		go k.read(strings.NewReader(input), true)
		k.session.wantEvents(t, "before the input is read", "")
		var got strings.Builder
		for range 5 {
			got.WriteString(k.session.read())
			synctest.Wait()
		}
		if got.String() != input {
			t.Errorf("the program read %q, want %q", got.String(), input)
		}
		k.session.wantEvents(t, "input that ends", "close")
		k.wantShown("input that ends", "")
		k.end()

		k = newTyping(t, 10, 20)
		k.read(strings.NewReader("x"), false)
		k.session.wantEvents(t, "a terminal that is gone", "leave")
		k.close()
	})
}
