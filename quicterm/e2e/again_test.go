//go:build linux || darwin

package e2e

import (
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An instance that asks for a session again, also while the first request is served, gets one
// session and one answer, whatever becomes of its connections.
func TestAttachAgain(t *testing.T) {
	h := newHost(t)
	h.Start()
	req := &wire.Attach{Instance: newInstance(), Command: "echo run >> " + h.Path("runs") + "; cat"}
	var answers [3]wire.Attached
	var wg sync.WaitGroup
	for i := range answers {
		c := dialRaw(t, h)
		c.send(encode(t, &wire.Hello{}), newToken(t, h), encode(t, req))
		wg.Go(func() {
			m, err := wire.Read(c.conn, wire.MaxMessage)
			if err == nil {
				err = m.Decode(&answers[i])
			}
			if err != nil {
				t.Error(err)
			}
			c.conn.Close()
		})
	}
	wg.Wait()
	h.Stop(syscall.SIGKILL) // the next daemon does not know of it
	h.Start()
	c, attached := attachRaw(t, h, req)
	for _, a := range answers {
		if !reflect.DeepEqual(a, *attached) {
			t.Errorf("answered with %+v, and later with %+v", a, *attached)
		}
	}
	c.send(ackFrame(1, 0, 1<<20, 0, 0, 0, 0), frame(1, wire.Stdin, "to the one"))
	c.wantOutput("to the one")
	if runs := h.Read("runs"); runs != "run\n" {
		t.Errorf("the command ran %d times", strings.Count(runs, "\n"))
	}
	other := *req
	other.Instance[0]++
	if _, a := attachRaw(t, h, &other); a.ID == attached.ID {
		t.Error("another instance got the same session")
	}
}

// The daemon is killed while a client attaches: the client asks again, and its command runs
// once.
func TestKilledDuringAttach(t *testing.T) {
	h := newHost(t)
	h.Start()
	cmd := h.QT("connect", "echo run >> "+h.Path("runs")+"; cat")
	out, errs := new(rig.Output), new(rig.Output)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("all of it"), out, errs
	from := h.Log.Len()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.Log.Await(t, from, regexp.MustCompile("client authenticated"))
	h.Stop(syscall.SIGKILL)
	h.Start()
	if err := cmd.Wait(); err != nil || out.String() != "all of it" || errs.String() != "" {
		t.Errorf("%v, output %q, errors %q", err, out.String(), errs.String())
	}
	if runs := h.Read("runs"); runs != "run\n" {
		t.Errorf("the command ran %d times", strings.Count(runs, "\n"))
	}
}
