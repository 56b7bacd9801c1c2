//go:build linux || darwin

package holder

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// print has the program print. It returns when the holder has taken all of it.
func (w *world) print(s string) {
	if _, err := w.program.out.Write([]byte(s)); err != nil {
		w.t.Errorf("the program cannot print: %v", err)
	}
	synctest.Wait()
}

// printing has the program print, and tells when that is done.
func (w *world) printing(s string) (done func() bool) {
	finished := make(chan struct{})
	w.wg.Go(func() {
		defer close(finished)
		w.program.out.Write([]byte(s))
	})
	return func() bool {
		synctest.Wait()
		select {
		case <-finished:
			return true
		default:
			return false
		}
	}
}

// lines returns numbered lines of together n bytes or somewhat more.
func lines(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "line %d of what the program prints\n", i)
	}
	return b.String()
}

// shown returns what a new client shows: what it has received, but for what it
// is to leave out.
func (c *client) shown() string { return c.output()[c.attached.Skip:] }

// goAway closes the client's carriers after it has acknowledged all.
func (c *client) goAway() {
	c.w.t.Helper()
	time.Sleep(time.Second)
	c.hangUp()
}

// wantPhase checks where the session is in its life, and for how long.
func (w *world) wantPhase(why string, phase wire.Phase, age time.Duration) {
	w.t.Helper()
	synctest.Wait()
	s, info := w.state()
	if since := time.Since(time.Unix(0, s.Since)); s.Phase != phase || info.Phase != phase || since != age {
		w.t.Errorf("%s: phase %d for %v, want %d for %v", why, s.Phase, since, phase, age)
	}
}

// A new client sees what was last on the screen, from a line's start on, and all
// that nobody has seen.
func TestReplay(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, Buffer: 8 << 20}, func(w *world) {
		all := lines(700 << 10)
		a := w.attach("a@x")
		if a := a.attached; !a.Created || a.First != 1 || a.Live != 1 || a.Skip != 0 {
			t.Errorf("the first client: %+v", a)
		}
		w.print(all)
		a.awaitOutput(all)
		a.goAway()
		unseen := strings.ToUpper(lines(100 << 10))
		w.print(unseen)

		var next uint64
		w.locked(func(h *Holder) { next = h.ring.Next() })
		b := w.attach("b@x")
		b.awaitOutput(unseen)
		seen, found := strings.CutSuffix(b.shown(), unseen)
		if !found || !strings.HasSuffix(all, "\n"+seen) {
			t.Errorf("shown is not the end of the output, from a line's start: it begins with %.50q", b.shown())
		}
		if n := len(b.output()); n > history+readSize || n < history-readSize {
			t.Errorf("sent %d bytes again, want about %d", n, history)
		}
		if a := b.attached; a.Created || a.First == 1 || a.Live != next || a.Skip == 0 || a.Skip > 100 {
			t.Errorf("the second client: %+v", a)
		}
		if s := w.program.Size(); s.Rows != 23 {
			t.Errorf("%d rows, want one less than the client has, for a moment", s.Rows)
		}
		time.Sleep(nudge + time.Nanosecond)
		if s := w.program.Size(); s.Rows != 24 {
			t.Errorf("%d rows, want what the client has", s.Rows)
		}
	})
}

// A line that is longer than what is kept has no start to begin from.
func TestReplayWithoutLines(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, Buffer: 8 << 20}, func(w *world) {
		a := w.attach("a@x")
		all := strings.Repeat("no end ", 100_000)
		w.print(all)
		a.awaitOutput(all)
		a.goAway()
		w.print("unseen")
		b := w.attach("b@x")
		b.awaitOutput("unseen")
		if b.shown() != "unseen" {
			t.Errorf("%d bytes that begin within a line", len(b.shown()))
		}
	})
}

// What nobody has seen is sent, however much it is.
func TestReplayUnseen(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, Buffer: 8 << 20}, func(w *world) {
		w.attach("a@x").hangUp()
		all := lines(3 << 20)
		w.print(all)
		b := w.attach("b@x")
		b.awaitOutput(all)
		if b.shown() != all {
			t.Errorf("%d bytes, want the %d that nobody has seen", len(b.shown()), len(all))
		}
	})
}

// A program with a terminal never waits when nobody is there. The next client
// learns exactly what has left the ring.
func TestNobodyThere(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, Buffer: 1 << 20}, func(w *world) {
		all := lines(5 << 20)
		if !w.printing(all)() {
			t.Fatal("the program waits, with nobody there")
		}
		a := w.attach("a@x")
		a.awaitOutput(all[len(all)-1000:])
		frames, bytes := a.lost()
		if bytes == 0 || int(bytes)+len(a.output()) != len(all) || !strings.HasSuffix(all, a.output()) {
			t.Errorf("lost %d frames with %d bytes, and received %d; the program has printed %d",
				frames, bytes, len(a.output()), len(all))
		}
	})
}

// A client that takes nothing more stops a program with a terminal for as long
// as it may still be there, and no longer. It has missed nothing when it is back.
func TestStalledClient(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, Buffer: 16 << 20}, func(w *world) {
		c, link := w.join("a@x") // and reads nothing
		all := lines(8 << 20)
		start := time.Now()
		done := w.printing(all)
		if done() {
			t.Fatal("the program does not wait for a client that is there")
		}
		w.locked(func(h *Holder) {
			want := h.backlogLocked()
			if n := h.ring.Size(1); n < want || n > want+2*readSize {
				t.Errorf("%d bytes wait for the client, want about %d", n, want)
			}
		})
		for !done() {
			time.Sleep(time.Second / 10)
		}
		if d := time.Since(start); d < stallLimit || d > stallLimit+time.Second {
			t.Errorf("the program has waited for %v, want %v", d, stallLimit)
		}
		c.run(link, true)
		c.awaitOutput(all)
	})
}

// The end of a client's time is not missed by output that is about to wait.
func TestStalledTimer(t *testing.T) {
	h := New(wire.Spec{PTY: true}, newStub(true), slog.New(slog.DiscardHandler))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stalled.Reset(0)
	time.Sleep(20 * time.Millisecond) // not yet waiting
	missed := time.AfterFunc(10*time.Second, func() {
		t.Error("not woken")
		h.changed.Broadcast()
	})
	h.changed.Wait()
	missed.Stop()
}

// The same client by a carrier that is dead, with another that works: it is
// there, and the program waits for it only.
func TestStalledCarrier(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, Buffer: 16 << 20}, func(w *world) {
		c, dead := w.join("a@x")
		defer dead.Close()
		c.resume()
		all := lines(8 << 20)
		start := time.Now()
		w.print(all)
		c.awaitOutput(all)
		if d := time.Since(start); d > stallLimit/2 {
			t.Errorf("took %v with one of two carriers dead", d)
		}
	})
}

// A command's output waits for its client, there or not, and nothing is lost.
func TestPipeWaits(t *testing.T) {
	inBubble(t, wire.Spec{Buffer: 1 << 20, PipeTTL: 10 * time.Hour}, func(w *world) {
		all := lines(12 << 20)
		done := w.printing(all)
		wait := func(why string) {
			t.Helper()
			time.Sleep(time.Hour)
			if done() {
				t.Fatalf("%s: the program does not wait", why)
			}
			w.locked(func(h *Holder) {
				if n := h.ring.Memory(); n > 1<<20 || n < 1<<19 {
					t.Errorf("%s: the ring takes %d bytes", why, n)
				}
			})
		}
		wait("no client yet")
		a, link := w.join("a@x")
		wait("a client that reads nothing")
		a.deaf = true
		a.run(link, true)
		wait("a client that deals with nothing")
		a.hangUp()
		wait("the client is gone")
		a.listen()
		a.resume()
		a.awaitOutput(all)
		if frames, _ := a.lost(); frames > 0 || a.output() != all {
			t.Errorf("%d bytes, %d frames lost; the program has printed %d bytes", len(a.output()), frames, len(all))
		}
		w.program.end(9)
		if got := a.awaitExit(); got != 9 {
			t.Errorf("status %d, want 9", got)
		}
		a.awaitEnd()
		if !w.over() {
			t.Error("the session goes on after its end was seen")
		}
	})
}

// A command is for the client that started it.
func TestPipeIsForOne(t *testing.T) {
	inBubble(t, wire.Spec{}, func(w *world) {
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
		if len(w.program.got()) > 0 {
			t.Errorf("the program got %v", w.program.got())
		}
		a.resume()
		a.leave()
		synctest.Wait()
		if got := w.program.got(); !slices.Equal(got, []syscall.Signal{syscall.SIGHUP}) {
			t.Errorf("the program got %v when its client left, want a hangup", got)
		}
		if !w.over() {
			t.Error("a session that nobody can see goes on after its program")
		}
	})
}

// Who has no terminal, or wants a command run, does not get a shell that there is.
func TestAttachToAnother(t *testing.T) {
	refused := func(w *world, req *wire.Attach, reason string) {
		w.t.Helper()
		m, _ := w.ask(&wire.Open{Client: "b@x"}, req)
		var e wire.Error
		if w.want(reason, m, &e); e.Code != wire.CodeFailed || !strings.Contains(e.Text, reason) {
			w.t.Errorf("%+v, want that it %s", e, reason)
		}
	}
	inBubble(t, wire.Spec{PTY: true}, func(w *world) {
		var created wire.Attached
		refused(w, &wire.Attach{}, "has a terminal")
		m, link := w.ask(&wire.Open{Client: "a@x"}, &wire.Attach{PTY: true, Command: "top"})
		if w.want("the first client", m, &created); !created.Created {
			t.Errorf("the first client: %+v", created)
		}
		link.Close()
		refused(w, &wire.Attach{}, "has a terminal")
		refused(w, &wire.Attach{PTY: true, Command: "top"}, "without a command")
		w.attach("b@x").hangUp()
	})
	inBubble(t, wire.Spec{}, func(w *world) {
		w.program.stubborn = true
		refused(w, &wire.Attach{PTY: true}, "is a pipe")
		w.attach("a@x").leave()
		synctest.Wait()
		refused(w, &wire.Attach{}, "is a pipe")
	})
}

// Another client takes a terminal over: the first is told by whom, and what it
// has typed and the program has not read is dropped.
func TestDisplaced(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		a.write("given ") // the holder waits with it for the program
		synctest.Wait()
		a.write("dropped ")
		synctest.Wait()
		b := w.attach("b@x")
		a.await("the notice", func() bool { return len(a.notices) > 0 })
		if n := a.notices[0]; n.Code != session.Displaced || n.Text != "b@x" {
			t.Errorf("notice %+v", n)
		}
		a.write("late ")
		b.write("typed by b\n")
		synctest.Wait()
		got := make([]byte, 100)
		n := 0
		for n < 6 || got[n-1] != '\n' {
			m, err := w.program.in.Read(got[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += m
		}
		if s := string(got[:n]); s != "given typed by b\n" {
			t.Errorf("the program was given %q", s)
		}
		if _, info := w.state(); !slices.Equal(info.Clients, []string{"b@x"}) {
			t.Errorf("clients %q, want b alone", info.Clients)
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

// The last of those that were displaced are told so when they come back; those
// before them are not known any more.
func TestManyDisplaced(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true}, func(w *world) {
		var all []*client
		for i := range maxDisplaced + 3 {
			all = append(all, w.attach(fmt.Sprintf("client%d@x", i)))
		}
		time.Sleep(displacedGrace)
		for i, c := range all {
			m, link := w.ask(&wire.Open{}, c.statement())
			want := wire.TypeError
			switch i {
			case 0, 1:
				want = wire.TypeDenied
			case len(all) - 1:
				want = wire.TypeResumed
				link.Close()
			}
			if m.Type != want {
				t.Errorf("client %d of %d is answered with %d, want %d", i, len(all), m.Type, want)
			}
		}
		w.locked(func(h *Holder) {
			if n := len(h.displaced); n != maxDisplaced {
				t.Errorf("%d displaced clients are kept, want %d", n, maxDisplaced)
			}
		})
	})
}

// Each proof is good once, for its own instance and session.
func TestResume(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		ask := func(why string, r *wire.Resume, want wire.Type) {
			t.Helper()
			m, c := w.ask(&wire.Open{}, r)
			if m.Type != want {
				t.Errorf("%s: answered with %d, want %d", why, m.Type, want)
			}
			if m.Type == wire.TypeDenied && !slices.Equal(m.Payload, mustEncode(t, &wire.Denied{}).Payload) {
				t.Errorf("%s: denied with %x", why, m.Payload)
			}
			if c != nil {
				c.Close()
				synctest.Wait()
			}
		}
		first, second := a.statement(), a.statement()
		ask("the second, raced past the first", second, wire.TypeResumed)
		ask("the first, late", first, wire.TypeResumed)
		ask("the first, again", first, wire.TypeDenied)
		ask("the second, again", second, wire.TypeDenied)
		wrong := a.statement()
		wrong.Proof[31] ^= 1
		ask("a wrong proof", wrong, wire.TypeDenied)
		wrong.Proof[31] ^= 1
		ask("its number with the right one", wrong, wire.TypeResumed)
		other := a.statement()
		other.Instance[0]++
		ask("another instance", other, wire.TypeDenied)
		other = a.statement()
		other.ID[0]++
		ask("another session", other, wire.TypeDenied)
		other = a.statement()
		other.UID++
		ask("another account", other, wire.TypeDenied)
		ask("number 0", &wire.Resume{UID: a.attached.UID, ID: a.attached.ID, Instance: first.Instance}, wire.TypeDenied)
		old := a.statement()
		for range 64 {
			ask("one after the other", a.statement(), wire.TypeResumed)
		}
		ask("one that is too old", old, wire.TypeDenied)
		a.write("still there")
		got := make([]byte, 11)
		if _, err := io.ReadFull(w.program.in, got); err != nil || string(got) != "still there" {
			t.Errorf("the program was given %q, %v", got, err)
		}
	})
}

func mustEncode(t testing.TB, v wire.Body) wire.Message {
	t.Helper()
	m, err := wire.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The oldest carrier of a client goes for a new one when it has too many.
func TestManyCarriers(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true}, func(w *world) {
		c, first := w.join("a@x")
		synctest.Wait()
		for n := 2; n <= maxCarriers+1; n++ {
			c.resume()
			synctest.Wait()
			w.locked(func(h *Holder) {
				if got, want := h.writer.pump.Carriers(), min(n, maxCarriers); got != want {
					t.Errorf("%d carriers after %d, want %d", got, n, want)
				}
			})
		}
		if _, err := first.Write([]byte("x")); err == nil {
			t.Error("the first carrier was not closed")
		}
		w.print("on all of them, once")
		c.awaitOutput("on all of them, once")
		c.hangUp()
		w.wantPhase("all of them are gone", wire.PhaseDetached, 0)
	})
}

// A carrier that begins to run when its client is done with is closed.
func TestLateCarriers(t *testing.T) {
	done := map[string]func(w *world){
		"over":      func(w *world) { w.locked(func(h *Holder) { h.finishLocked("for the test") }) },
		"displaced": func(w *world) { w.attach("b@x"); time.Sleep(displacedGrace) },
	}
	for why, do := range done {
		t.Run(why, func(t *testing.T) {
			inBubble(t, wire.Spec{PTY: true}, func(w *world) {
				a := w.attach("a@x")
				_, carry, err := w.h.Handle(&wire.Open{}, mustEncode(t, a.statement()))
				if err != nil {
					t.Fatal(err)
				}
				do(w)
				synctest.Wait()
				ours, theirs := memoryPair()
				defer ours.Close()
				w.wg.Go(func() { carry(theirs) })
				go io.Copy(io.Discard, ours)
				synctest.Wait()
				select {
				case <-ours.done:
				default:
					t.Error("the carrier runs")
				}
			})
		})
	}
}

// The exit is behind all output. Of a terminal, that is what came before a
// moment of silence.
func TestExitBehindOutput(t *testing.T) {
	t.Run("terminal", func(t *testing.T) {
		inBubble(t, wire.Spec{PTY: true}, func(w *world) {
			a := w.attach("a@x")
			w.program.status <- 5
			for range 3 { // by children that have the terminal still
				time.Sleep(quiet * 3 / 4)
				w.print("late\n")
			}
			start := time.Now()
			if got := a.awaitExit(); got != 5 {
				t.Errorf("status %d, want 5", got)
			}
			if d := time.Since(start); d < quiet || d > 2*quiet {
				t.Errorf("the end came %v after the last output, want %v", d, quiet)
			}
			if a.output() != "late\nlate\nlate\n" {
				t.Errorf("output %q", a.output())
			}
		})
	})
	t.Run("terminal that others never let be", func(t *testing.T) {
		inBubble(t, wire.Spec{PTY: true}, func(w *world) {
			a := w.attach("a@x")
			w.program.status <- 5
			start := time.Now()
			w.wg.Go(func() {
				for range 1000 {
					time.Sleep(quiet / 3)
					w.program.out.Write([]byte("still here\n"))
				}
			})
			if got := a.awaitExit(); got != 5 {
				t.Errorf("status %d, want 5", got)
			}
			if d := time.Since(start); d < maxDrain || d > maxDrain+2*quiet {
				t.Errorf("the end came after %v, want %v", d, maxDrain)
			}
			w.program.end(5)
		})
	})
	t.Run("terminal that waits for its client", func(t *testing.T) {
		inBubble(t, wire.Spec{PTY: true, Buffer: 16 << 20}, func(w *world) {
			c, link := w.join("a@x")
			all := lines(3 << 20)
			w.printing(all)
			w.program.status <- 5
			time.Sleep(stallLimit / 2)
			c.run(link, true)
			if got := c.awaitExit(); got != 5 || c.output() != all {
				t.Errorf("status %d behind %d bytes, want 5 behind %d", got, len(c.output()), len(all))
			}
		})
	})
	t.Run("pipe", func(t *testing.T) {
		inBubble(t, wire.Spec{Buffer: 1 << 20, PipeTTL: 10 * time.Hour}, func(w *world) {
			a := w.attach("a@x")
			w.program.status <- 5
			w.print("out ")
			time.Sleep(time.Hour) // a child in the background has the pipe
			w.print("late")
			w.program.err.Write([]byte("errors"))
			w.program.out.Close()
			time.Sleep(time.Hour)
			w.program.err.Close()
			if got := a.awaitExit(); got != 5 || a.output() != "out late" || a.outputLocked(session.Stderr) != "errors" {
				t.Errorf("status %d behind %q and %q", got, a.output(), a.outputLocked(session.Stderr))
			}
			var ends []byte
			for _, d := range a.frames {
				if d.Type == session.EOF {
					ends = append(ends, d.Payload...)
				}
			}
			if string(ends) != "\x01\x02" {
				t.Errorf("ends of streams %v, want both, as they came", ends)
			}
		})
	})
}

// A session that nobody has seen the end of is kept for a while.
func TestExitedTTL(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, ExitedTTL: 3 * time.Hour}, func(w *world) {
		w.attach("a@x").hangUp()
		time.Sleep(100 * time.Hour)
		w.wantPhase("before the end", wire.PhaseDetached, 100*time.Hour)
		w.program.end(4)
		time.Sleep(3*time.Hour - time.Second)
		if w.over() {
			t.Fatal("over before exited_ttl")
		}
		if _, info := w.state(); info.Phase != wire.PhaseExited || info.Status != 4 {
			t.Errorf("%+v, want exited with 4", info)
		}
		time.Sleep(maxAgeWait)
		if !w.over() {
			t.Error("not over after exited_ttl")
		}
	})
}

// One that somebody comes to see is over then.
func TestExitSeenLater(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true}, func(w *world) {
		w.print("last words")
		w.program.end(4)
		time.Sleep(23 * time.Hour)
		a := w.attach("a@x")
		if got := a.awaitExit(); got != 4 || a.output() != "last words" {
			t.Errorf("status %d behind %q", got, a.output())
		}
		a.awaitEnd()
		if !w.over() {
			t.Error("the session goes on after its end was seen")
		}
		m, _ := w.ask(&wire.Open{Client: "b@x"}, &wire.Attach{PTY: true})
		var e wire.Error
		if w.want("attach after the end", m, &e); !strings.Contains(e.Text, "is over") {
			t.Errorf("told %+v", e)
		}
	})
}

// What comes behind the end, from processes that were left behind, neither keeps
// the session nor pushes its end out.
func TestOutputBehindExit(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, Buffer: 1 << 20}, func(w *world) {
		w.program.status <- 4
		time.Sleep(time.Second)
		w.print(lines(3 << 20))
		a, link := w.join("a@x")
		a.deaf = true
		a.run(link, true)
		a.await("what is there", func() bool { return len(a.frames) > 1 })
		a.mu.Lock()
		if d := a.frames[0]; d.Lost != nil || d.Type != session.Exit || d.Payload[0] != 4 {
			t.Errorf("begins with %+v, want the end of the program", d)
		}
		a.peer.Consume(time.Now(), a.frames[0])
		a.pump.Wake()
		a.mu.Unlock()
		time.Sleep(time.Second)
		if !w.over() {
			t.Error("the session goes on after its end was seen")
		}
	})
}

// A command's client that leaves after its end is the last that could see it.
func TestPipeLeftAfterExit(t *testing.T) {
	inBubble(t, wire.Spec{}, func(w *world) {
		a, link := w.join("a@x")
		a.deaf = true
		a.run(link, true)
		w.program.end(0)
		a.awaitExit()
		if w.over() {
			t.Fatal("over before its end was seen")
		}
		a.leave()
		if synctest.Wait(); !w.over() {
			t.Error("a session that nobody can see goes on")
		}
	})
}

// A terminal that nobody is at is hung up after detached_ttl, if there is one.
// Who comes back in time has all of it again.
func TestDetachedTTL(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, DetachedTTL: 5 * time.Hour}, func(w *world) {
		w.program.stubborn = true
		a := w.attach("a@x")
		time.Sleep(50 * time.Hour)
		if len(w.program.got()) > 0 {
			t.Fatal("hung up with somebody there")
		}
		a.hangUp()
		time.Sleep(4 * time.Hour)
		w.wantPhase("detached", wire.PhaseDetached, 4*time.Hour)
		a.resume()
		w.wantPhase("back", wire.PhaseAttached, 0)
		time.Sleep(4 * time.Hour)
		a.hangUp()
		time.Sleep(5*time.Hour - time.Second)
		if len(w.program.got()) > 0 {
			t.Fatal("hung up before detached_ttl")
		}
		time.Sleep(maxAgeWait)
		if got := w.program.got(); !slices.Equal(got, []syscall.Signal{syscall.SIGHUP, syscall.SIGKILL}) {
			t.Errorf("the program got %v, want a hangup and, as it does not end, a kill", got)
		}
		time.Sleep(2 * time.Hour)
		if got := w.program.got(); len(got) != 2 {
			t.Errorf("the program got %v: it is hung up at each look", got)
		}
	})
}

func TestPipeTTL(t *testing.T) {
	inBubble(t, wire.Spec{PipeTTL: time.Hour}, func(w *world) {
		a := w.attach("a@x")
		time.Sleep(10 * time.Hour)
		a.hangUp()
		time.Sleep(time.Hour - time.Second)
		if len(w.program.got()) > 0 {
			t.Fatal("hung up before pipe_ttl")
		}
		time.Sleep(maxAgeWait)
		if got := w.program.got(); len(got) == 0 || got[0] != syscall.SIGHUP {
			t.Errorf("the program got %v, want a hangup", got)
		}
		// Its client may still learn how it ended.
		a.resume()
		if got := a.awaitExit(); got != 129 {
			t.Errorf("status %d, want 129", got)
		}
	})
}

// A command whose client never came is hung up as well.
func TestPipeTTLWithoutClient(t *testing.T) {
	inBubble(t, wire.Spec{PipeTTL: time.Hour}, func(w *world) {
		time.Sleep(time.Hour + maxAgeWait)
		if got := w.program.got(); len(got) == 0 || got[0] != syscall.SIGHUP {
			t.Errorf("the program got %v, want a hangup", got)
		}
		time.Sleep(time.Minute)
		if !w.over() {
			t.Error("a session that nobody can see goes on after its program")
		}
	})
}

// A command that was hung up while its output waited for a client that is gone
// comes to its end.
func TestPipeFullAndGone(t *testing.T) {
	kill := func(w *world) { w.ask(&wire.Open{}, &wire.Kill{}) }
	expire := func(*world) { time.Sleep(time.Hour + maxAgeWait) }
	for why, end := range map[string]func(*world){"killed": kill, "expired": expire} {
		t.Run(why, func(t *testing.T) {
			inBubble(t, wire.Spec{PipeTTL: time.Hour}, func(w *world) {
				w.attach("a@x").hangUp()
				done := w.printing(lines(12 << 20))
				if done() {
					t.Fatal("the program does not wait")
				}
				end(w)
				time.Sleep(time.Second)
				if _, info := w.state(); !w.over() && info.Phase != wire.PhaseExited {
					t.Errorf("phase %d, want the session to be at its end", info.Phase)
				}
			})
		})
	}
}

// A kill is answered at once; the session ends with its program, or before its
// client's eyes.
func TestKill(t *testing.T) {
	kill := func(w *world) {
		w.t.Helper()
		m, _ := w.ask(&wire.Open{Client: "killer@x"}, &wire.Kill{Session: "whatever"})
		w.want("kill", m, &wire.Done{})
		synctest.Wait()
	}
	t.Run("with a client", func(t *testing.T) {
		inBubble(t, wire.Spec{PTY: true}, func(w *world) {
			a := w.attach("a@x")
			kill(w)
			if got := a.awaitExit(); got != 129 {
				t.Errorf("status %d, want 129", got)
			}
			a.awaitEnd()
			if !w.over() {
				t.Error("not over")
			}
		})
	})
	t.Run("with a client that goes away", func(t *testing.T) {
		inBubble(t, wire.Spec{PTY: true}, func(w *world) {
			a, link := w.join("a@x")
			a.deaf = true
			a.run(link, true)
			w.program.stubborn = true
			kill(w)
			w.program.end(1)
			a.awaitExit()
			if w.over() {
				t.Fatal("over before its client has seen its end")
			}
			a.hangUp()
			if synctest.Wait(); !w.over() {
				t.Error("not over")
			}
		})
	})
	t.Run("with a client that is away", func(t *testing.T) {
		inBubble(t, wire.Spec{PTY: true}, func(w *world) {
			w.attach("a@x").hangUp()
			kill(w)
			time.Sleep(time.Second)
			if !w.over() {
				t.Error("not over")
			}
		})
	})
	t.Run("without", func(t *testing.T) {
		inBubble(t, wire.Spec{PTY: true}, func(w *world) {
			kill(w)
			time.Sleep(time.Second)
			if !w.over() {
				t.Error("not over")
			}
		})
	})
	t.Run("stubborn", func(t *testing.T) {
		inBubble(t, wire.Spec{PTY: true}, func(w *world) {
			w.program.stubborn = true
			kill(w)
			time.Sleep(killGrace - time.Nanosecond)
			if got := w.program.got(); !slices.Equal(got, []syscall.Signal{syscall.SIGHUP}) {
				t.Errorf("got %v, want a hangup", got)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if got := w.program.got(); !slices.Equal(got, []syscall.Signal{syscall.SIGHUP, syscall.SIGKILL}) {
				t.Errorf("got %v, want a kill as well", got)
			}
		})
	})
	t.Run("exited", func(t *testing.T) {
		inBubble(t, wire.Spec{PTY: true}, func(w *world) {
			w.program.end(0)
			time.Sleep(time.Second)
			if w.over() {
				t.Fatal("over before anybody has seen its end")
			}
			kill(w)
			if !w.over() {
				t.Error("not over")
			}
		})
	})
}

// A scope hides the session from others. The daemon must count its memory and not
// give its name to another, and learns no more.
func TestScope(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, Scope: "mine", Name: "name", Command: "secret"}, func(w *world) {
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
		if s.Memory == 0 || s.Visible || s.Phase != 0 || s.Since != 0 || s.Name != "name" || len(s.Info) > 0 {
			t.Errorf("another scope sees %+v", s)
		}
		for _, request := range []wire.Body{&wire.Kill{}, &wire.Attach{}} {
			m, c := w.ask(other, request)
			var e wire.Error
			if w.want("another scope", m, &e); e.Code != wire.CodeNoSession || c != nil {
				t.Errorf("message %d: %+v", request.Type(), e)
			}
		}
		if len(w.program.got()) > 0 {
			t.Errorf("the program got %v", w.program.got())
		}
		m, _ = w.ask(&wire.Open{Scope: "mine", NoPTY: true}, &wire.Attach{})
		var e wire.Error
		if w.want("a key without a terminal", m, &e); !strings.Contains(e.Text, "may not have a terminal") {
			t.Errorf("told %+v", e)
		}
	})
}

// What a client sends while the program does not read is bounded, and what must
// not wait for the program does not.
func TestProgramThatDoesNotRead(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true}, func(w *world) {
		w.program.stubborn = true
		a := w.attach("a@x")
		for range 3 << 20 / 4096 {
			a.write(strings.Repeat("x", 4096))
		}
		time.Sleep(time.Minute)
		w.locked(func(h *Holder) {
			held := 0
			for _, d := range h.writer.queue {
				held += len(d.Payload)
			}
			if held > inputWindow {
				t.Errorf("%d bytes of input wait, more than %d", held, inputWindow)
			}
		})
		a.mu.Lock()
		sent := a.peer.Acked()
		a.mu.Unlock()
		if sent > inputWindow/4096+1 || sent < inputWindow/4096/2 {
			t.Errorf("%d frames were taken", sent)
		}
		go io.Copy(io.Discard, w.program.in)
		a.send(session.Resize, string(session.Size{Cols: 100, Rows: 50}.Append(nil)))
		a.send(session.Signal, "INT")
		a.await("all input to be read", func() bool { return a.peer.Consumed() == a.input.Next() })
		if w.program.Size() != (session.Size{Cols: 100, Rows: 50}) || !slices.Equal(w.program.got(), []syscall.Signal{syscall.SIGINT}) {
			t.Errorf("size %+v, signals %v", w.program.Size(), w.program.got())
		}
	})
}

// Resize and Signal do not wait for what is before them to be read.
func TestUrgent(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true}, func(w *world) {
		w.program.stubborn = true
		a := w.attach("a@x")
		a.write("not read\n")
		a.send(session.Signal, "INT")
		a.send(session.Resize, string(session.Size{Cols: 100, Rows: 50}.Append(nil)))
		synctest.Wait()
		if w.program.Size() != (session.Size{Cols: 100, Rows: 50}) || !slices.Equal(w.program.got(), []syscall.Signal{syscall.SIGINT}) {
			t.Errorf("size %+v, signals %v", w.program.Size(), w.program.got())
		}
	})
}

// That nobody reads the output reaches a program that does not read its input:
// as a frame behind that, and as a notice where even the frame would find no room.
func TestReaderGone(t *testing.T) {
	frame := func(c *client, s session.Stream) { c.send(session.Closed, string(rune(s))) }
	notice := func(c *client, s session.Stream) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.peer.Notify(session.ReaderGone, string(rune(s)))
		c.pump.Wake()
	}
	tests := []struct {
		why   string
		input int
		say   func(*client, session.Stream)
	}{
		{"frame", 1000, frame},
		{"notice", 3 << 20, notice},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			inBubble(t, wire.Spec{}, func(w *world) {
				a := w.attach("a@x")
				for range test.input / 1000 {
					a.write(strings.Repeat("x", 1000))
				}
				synctest.Wait()
				test.say(a, session.StreamStdout)
				test.say(a, session.Stream(9)) // which there is not
				a.resume()                     // brings notices once more
				time.Sleep(time.Second)
				if _, err := w.program.out.Write([]byte("x")); err == nil {
					t.Error("the program can print, and nobody reads it")
				}
				w.wg.Go(func() { w.program.err.Write([]byte("error")) })
				a.await("its other output", func() bool { return a.outputLocked(session.Stderr) == "error" })
			})
		})
	}
}
