//go:build linux || darwin

package holder

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// The description of a session says when its client was heard last, as long as it is connected.
func TestHeard(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		heard := func(why string, want time.Time) {
			t.Helper()
			if _, info := w.state(); info.Heard != want.Unix() {
				t.Errorf("%s: heard at %d, want %d", why, info.Heard, want.Unix())
			}
		}
		a := w.attach("a@x")
		attached := time.Now()
		time.Sleep(time.Minute)
		heard("a client that is silent", attached)
		a.write("x")
		heard("a client that types", time.Now())
		a.hangUp()
		if _, info := w.state(); info.Heard != 0 {
			t.Errorf("a client that is away: heard at %d", info.Heard)
		}
	})
}

// Only the client that started a command can use its session.
func TestPipeIsForOne(t *testing.T) {
	inBubble(t, wire.Launch{}, func(w *world) {
		a := w.attach("a@x")
		refused := func(why string) {
			t.Helper()
			m, _ := w.ask(&wire.Open{Client: "b@x"}, &wire.Attach{})
			var e wire.Error
			if w.want(why, m, &e); e.Code != wire.CodeFailed || !strings.Contains(e.Text, "only the client that started it") {
				t.Errorf("%s: %+v", why, e)
			}
		}
		refused("another client, with the first there")
		a.hangUp()
		refused("another client, with the first away")
		if len(w.program.Signals()) > 0 {
			t.Errorf("the program got %v", w.program.Signals())
		}
		a.resume()
		a.leave()
		if got := w.program.Signals(); !slices.Equal(got, []syscall.Signal{syscall.SIGHUP}) {
			t.Errorf("the program got %v when its client left, want a hangup", got)
		}
		if !w.over() {
			t.Error("a session that no client can see continues after its program")
		}
	})
}

// A client without a terminal, or with a command to run, is not attached to a shell that
// runs.
func TestAttachToAnother(t *testing.T) {
	refused := func(w *world, req *wire.Attach, reason string) {
		w.t.Helper()
		m, _ := w.ask(&wire.Open{Client: "b@x"}, req)
		var e wire.Error
		if w.want(reason, m, &e); e.Code != wire.CodeFailed || !strings.Contains(e.Text, reason) {
			w.t.Errorf("%+v, want that it %s", e, reason)
		}
	}
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		var created wire.Attached
		refused(w, &wire.Attach{}, "has a terminal")
		m, conn := w.ask(&wire.Open{Client: "a@x"}, &wire.Attach{PTY: true, Command: "top"})
		if w.want("the first client", m, &created); !created.Created {
			t.Errorf("the first client: %+v", created)
		}
		conn.Close()
		refused(w, &wire.Attach{}, "has a terminal")
		refused(w, &wire.Attach{PTY: true, Command: "top"}, "without a command")
		w.attach("b@x").hangUp()
	})
	inBubble(t, wire.Launch{}, func(w *world) {
		w.program.IgnoreSignals()
		refused(w, &wire.Attach{PTY: true}, "is a pipe")
		w.attach("a@x").leave()
		refused(w, &wire.Attach{}, "is a pipe")
	})
}

// Another client takes a terminal over: the first is told by whom. What it typed and the
// program has not read is dropped.
func TestDisplaced(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		a.write("given ") // the holder waits with it for the program
		a.write("dropped ")
		b := w.attach("b@x")
		a.await("the notice", func() bool { return len(a.notices) > 0 })
		if n := a.notices[0]; n.Code != wire.NoticeDisplaced || n.Text != "b@x" {
			t.Errorf("notice %+v", n)
		}
		a.write("late ")
		b.write("typed by b\n")
		got := make([]byte, 100)
		n := 0
		for n < 6 || got[n-1] != '\n' {
			m, err := w.program.In.Read(got[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += m
		}
		if s := string(got[:n]); s != "given typed by b\n" {
			t.Errorf("the program was given %q", s)
		}
		if _, info := w.state(); len(info.Members) != 1 || info.Members[0].Client != "b@x" {
			t.Errorf("members %v, want b alone", info.Members)
		}
		start := time.Now()
		a.awaitEnd()
		if d := time.Since(start); d != displacedGrace {
			t.Errorf("its carrier is closed after %v, want %v", d, displacedGrace)
		}
		m, _ := w.ask(&wire.Open{}, a.statement())
		var e wire.Error
		if w.want("resume of a displaced client", m, &e); e.Code != wire.CodeDisplaced || e.Text != "b@x" {
			t.Errorf("told %+v", e)
		}
		w.print("for b")
		b.awaitOutput("for b")
		if strings.Contains(a.output(), "for b") {
			t.Error("a displaced client is sent output")
		}
	})
}

// The clients that were displaced last are told so when they come back. Those before them
// are unknown.
func TestManyDisplaced(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		var all []*client
		for i := range maxLost + 3 {
			all = append(all, w.attach(fmt.Sprintf("client%d@x", i)))
		}
		time.Sleep(displacedGrace)
		for i, c := range all {
			m, conn := w.ask(&wire.Open{}, c.statement())
			want := wire.TypeError
			switch i {
			case 0, 1:
				want = wire.TypeDenied
			case len(all) - 1:
				want = wire.TypeResumed
				conn.Close()
			}
			if m.Type != want {
				t.Errorf("client %d of %d is answered with %d, want %d", i, len(all), m.Type, want)
			}
		}
		w.locked(func(h *Holder) {
			if n := len(h.clients.all); n != maxLost+1 {
				t.Errorf("%d clients are kept, want %d and the writer", n, maxLost)
			}
		})
	})
}

// A session is hidden from other scopes. The daemon counts its memory, and learns no more.
func TestScope(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Scope: "mine", Name: "name", Command: "secret"}, func(w *world) {
		w.print("something")
		for _, scope := range []string{"mine", ""} {
			m, _ := w.ask(&wire.Open{Scope: scope}, &wire.Query{})
			var s wire.State
			if w.want("query", m, &s); !s.Visible || s.Name != "name" {
				t.Errorf("scope %q sees %+v", scope, s)
			}
		}
		other := &wire.Open{Scope: "other", Client: "b@x"}
		m, _ := w.ask(other, &wire.Query{})
		var s wire.State
		w.want("query", m, &s)
		if s.Memory == 0 || s.Visible || s.Phase != 0 || s.Since != 0 || s.Own || s.Name != "" || len(s.Info) > 0 {
			t.Errorf("another scope sees %+v", s)
		}
		for _, request := range []wire.Body{&wire.Kill{}, &wire.Attach{}} {
			m, c := w.ask(other, request)
			var e wire.Error
			if w.want("another scope", m, &e); e.Code != wire.CodeNoSession || c != nil {
				t.Errorf("message %d: %+v", request.Type(), e)
			}
		}
		if len(w.program.Signals()) > 0 {
			t.Errorf("the program got %v", w.program.Signals())
		}
		m, _ = w.ask(&wire.Open{Scope: "mine", NoPTY: true}, &wire.Attach{})
		var e wire.Error
		if w.want("a key without a terminal", m, &e); !strings.Contains(e.Text, "may not have a terminal") {
			t.Errorf("told %+v", e)
		}
	})
}
