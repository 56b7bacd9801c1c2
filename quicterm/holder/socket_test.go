//go:build linux || darwin

package holder

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// shortDir returns a directory whose name leaves room for that of a socket.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// onSocket returns a holder that serves a socket. Its program prints what it reads.
func onSocket(t testing.TB, launch wire.Launch) *world {
	t.Helper()
	w := &world{t: t, log: new(logbook), program: programtest.NewStub(launch.PTY), timeout: 20 * time.Second}
	w.program.IgnoreSignals()
	go io.Copy(w.program.Out, w.program.In)
	w.start(launch, w.program)
	w.listen(rundir.Base(filepath.Join(shortDir(t), "run")))
	t.Cleanup(w.end)
	return w
}

// listen has the holder serve a socket.
func (w *world) listen(base rundir.Base) {
	w.t.Helper()
	s, err := socket.Listen(base, socket.Name(w.h.launch.ID))
	if err != nil {
		w.t.Fatal(err)
	}
	w.socket, w.path = s, filepath.Join(base.Dirs(uint32(os.Geteuid()))[0], socket.Name(w.h.launch.ID))
	w.wg.Go(func() { w.h.Serve(s) })
}

// awaitLog blocks until the log has n lines that contain the words, and checks that it has
// no more.
func (w *world) awaitLog(n int, words ...string) {
	w.t.Helper()
	for until := time.Now().Add(w.timeout); len(w.log.lines(words...)) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			break
		}
	}
	if got := w.log.lines(words...); len(got) != n {
		w.t.Errorf("%d lines with %q, want %d:\n%s", len(got), words, n, strings.Join(got, ""))
	}
}

// ping checks that the client's session works in both directions.
func (c *client) ping() {
	c.w.t.Helper()
	c.pings++
	word := fmt.Sprintf("ping %d of %s.", c.pings, c.name)
	c.write(word + "\n")
	c.awaitOutput(word)
}

// A socket whose directory was removed is made again within a minute.
func TestSocketRestoredEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := shortDir(t)
		base := rundir.Base(filepath.Join(dir, "run"))
		s, err := socket.Listen(base, "x.sock")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		path := filepath.Join(base.Dirs(uint32(os.Geteuid()))[0], "x.sock")
		w := &world{t: t, log: new(logbook), program: programtest.NewStub(true)}
		w.start(wire.Launch{PTY: true}, w.program)
		defer w.end()
		w.wg.Go(func() { w.h.keep(s.Restore) })
		reachable := func() bool {
			c, err := net.Dial("unix", path)
			if err == nil {
				c.Close()
			}
			return err == nil
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if !reachable() {
			t.Fatal("an untouched socket is gone")
		}
		for _, gone := range []string{path, filepath.Dir(path), string(base), dir} {
			if err := os.RemoveAll(gone); err != nil {
				t.Fatal(err)
			}
			if reachable() {
				t.Fatalf("reachable without %s", gone)
			}
			if gone == dir { // which the holder does not make
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(sweepInterval)
			synctest.Wait()
			if !reachable() {
				t.Errorf("not reachable a minute after %s was removed", gone)
			}
		}
		// Another file with its name is replaced.
		os.Remove(path)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(sweepInterval)
		synctest.Wait()
		if !reachable() {
			t.Error("not reachable a minute after a file was put in its place")
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeSocket|0o600 {
			t.Errorf("the socket is %v, %v", info, err)
		}
		// It is not made in a place that is not safe; the log tells, and it comes back.
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Dir(path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(sweepInterval)
		synctest.Wait()
		if n := len(w.log.lines("socket is gone")); n != 1 {
			t.Errorf("%d lines about a socket that cannot be made, want 1", n)
		}
		if err := os.Remove(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(sweepInterval)
		synctest.Wait()
		if !reachable() {
			t.Error("not reachable a minute after the place is safe")
		}
	})
}

// A connected client is not disturbed when the socket is made again, and new ones reach
// it.
func TestSocketRestored(t *testing.T) {
	w := onSocket(t, wire.Launch{PTY: true})
	a := w.attach("a@x")
	a.ping()
	for range 3 {
		if err := os.RemoveAll(filepath.Dir(w.path)); err != nil {
			t.Fatal(err)
		}
		a.ping()
		if err := w.socket.Restore(); err != nil {
			t.Fatal(err)
		}
		a.ping()
		a.hangUp()
		a.write("typed meanwhile\n")
		a.resume()
		a.awaitOutput("typed meanwhile\n")
		a.ping()
	}
	w.socket.Close()
	if err := w.socket.Restore(); err == nil {
		t.Error("restored after it was closed")
	}
	if _, err := os.Lstat(w.path); !os.IsNotExist(err) {
		t.Errorf("the socket's file is left: %v", err)
	}
}

// futureMessage encodes a message with fields that this version does not know.
func futureMessage(t testing.TB, typ wire.Type, fields map[any]any) wire.Message {
	t.Helper()
	all := map[any]any{99: "later", -1: nil, "named": []any{1, map[any]any{true: 2.5}, []byte("x")}}
	for k, v := range fields {
		all[k] = v
	}
	b, err := cbor.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Message{Type: typ, Payload: b}
}

// A newer daemon is understood as far as this version knows its messages.
func TestVersionSkew(t *testing.T) {
	w := onSocket(t, wire.Launch{PTY: true})
	answer := func(open, request wire.Message) wire.Message {
		t.Helper()
		c := dial(t, w.path)
		defer c.Close()
		b := append([]byte{0}, open.Append(nil)...)
		if _, err := c.Write(request.Append(b)); err != nil {
			t.Fatal(err)
		}
		m, err := wire.Read(c, wire.MaxMessage)
		if err != nil {
			t.Fatalf("no answer to %d: %v", request.Type, err)
		}
		return m
	}
	open := futureMessage(t, wire.TypeOpen, map[any]any{1: "new@x"})
	for _, typ := range []wire.Type{0, wire.TypeHello, wire.TypeAttached, wire.TypeOpen, wire.TypeState, 77, 255} {
		var e wire.Error
		m := answer(open, futureMessage(t, typ, nil))
		if w.want("unknown request", m, &e); e.Code != wire.CodeUnknown || !strings.Contains(e.Text, fmt.Sprint(typ)) {
			t.Errorf("message %d is answered with %+v", typ, e)
		}
	}
	w.want("query", answer(open, futureMessage(t, wire.TypeQuery, nil)), &wire.State{})
	var attached wire.Attached
	m := answer(open, futureMessage(t, wire.TypeAttach, map[any]any{3: make([]byte, 16), 4: true, 5: []int{80, 24, 0, 0}}))
	if w.want("attach", m, &attached); attached.Name != "world" || len(attached.Secret) == 0 {
		t.Errorf("%+v", attached)
	}
	w.program.End(0)
	w.want("kill", answer(open, futureMessage(t, wire.TypeKill, map[any]any{1: "x"})), &wire.Done{})
	w.awaitLog(0, "daemon refused")
}

// dial connects to a holder, but not as a daemon does.
func dial(t testing.TB, path string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}
