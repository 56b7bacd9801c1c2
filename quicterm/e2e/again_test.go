//go:build linux || darwin

package e2e

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/netem"
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

// The daemon is killed when a client's session runs and the client does not know it: the client
// asks again, and its command runs once.
func TestKilledDuringAttach(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	const lost = "qt: the connection was lost before 127.0.0.1 answered; asking again for 1m0s at most\n"
	for try := 1; ; try++ {
		runs := h.Path(fmt.Sprint("runs", try))
		cmd := h.Via(p.Addr(), "connect", nil, "echo run >> "+runs+"; cat")
		out, errs := new(rig.Output), new(rig.Output)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("all of it"), out, errs
		from := h.Log.Len()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.Log.Await(t, from, regexp.MustCompile("client logged in"))
		p.SetDown(netem.Config{Down: true}) // while the holder starts
		h.Log.Await(t, from, regexp.MustCompile("session started"))
		h.Stop(syscall.SIGKILL)
		h.Start()
		p.Set(netem.Config{})
		if err := cmd.Wait(); err != nil || out.String() != "all of it" {
			t.Errorf("%v, output %q, errors %q", err, out.String(), errs.String())
		}
		if b, err := os.ReadFile(runs); err != nil || string(b) != "run\n" {
			t.Errorf("the command ran %d times, %v", strings.Count(string(b), "\n"), err)
		}
		if said := errs.String(); said != "" && said != lost || t.Failed() {
			t.Fatalf("errors %q", said)
		}
		if strings.Count(h.Log.String()[from:], "client logged in") > 1 {
			return
		}
		if try == 10 { // or the answer was quicker
			t.Fatal("the client never asks again")
		}
	}
}
