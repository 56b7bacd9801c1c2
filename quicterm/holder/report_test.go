//go:build linux || darwin

package holder

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// report asks the holder for its report.
func (w *world) report() (r wire.Report) {
	w.t.Helper()
	m, _ := w.ask(&wire.Open{}, &wire.Inspect{})
	w.want("inspect", m, &r)
	return r
}

// A report counts what all clients have caused, also those that have left.
func TestReport(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Name: "work"}, func(w *world) {
		w.h.software = "qtd 1"
		created := time.Now()
		a := w.attach("a@x")
		a.write("typed")
		w.print("printed")
		a.awaitOutput("printed")
		w.locked(func(h *Holder) {
			e := h.clients.writer().endpoint
			e.CountCorrupted()
			id := e.Up(time.Now(), 0, true)
			for range 2 {
				f := buffer.Frame{Seq: 1, Type: wire.Stdin, Payload: []byte("typed")}
				if err := e.Receive(time.Now(), id, session.StreamLane, f); err != nil {
					t.Error(err)
				}
			}
			e.Down(time.Now(), id)
		})
		r := w.report()
		if r.Software != "qtd 1" || r.Name != "work" || r.Phase != wire.PhaseAttached || !r.PTY ||
			r.Created != created.Unix() || r.Corrupted != 1 || r.Duplicates != 2 || r.Gaps != 0 ||
			r.Ring == 0 || r.Memory < r.Ring || r.Capacity < r.Ring {
			t.Errorf("got %+v", r)
		}
		a.leave()
		if r = w.report(); r.Phase != wire.PhaseDetached || r.Corrupted != 1 || r.Duplicates != 2 {
			t.Errorf("after the client has left: got %+v", r)
		}
	})
}

// A client that was away learns nothing of how long; its daemon does.
func TestReportOfResume(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		a.hangUp()
		time.Sleep(time.Minute)
		m, c := w.ask(&wire.Open{}, a.statement())
		var r wire.Resumed
		if w.want("resume", m, &r); r.Away < time.Minute || r.Away > 2*time.Minute {
			t.Errorf("away for %v, want a minute", r.Away)
		}
		c.Close()
	})
}

// A report that waits for the end of the session has its status and reason. Daemons that
// close the connection leave nothing behind.
func TestReportAtEnd(t *testing.T) {
	w := onSocket(t, wire.Launch{PTY: true})
	a := w.attach("a@x")
	open := mustEncode(t, &wire.Open{}).Append([]byte{0})
	inspect := mustEncode(t, &wire.Inspect{AtEnd: true}).Append(nil)
	gone, waits := dial(t, w.path), dial(t, w.path)
	gone.Write(append(open, inspect...))
	gone.Close()
	waits.Write(append(open, inspect...))
	w.program.End(3)
	a.awaitEnd()
	m, err := wire.Read(waits, wire.MaxAnswer)
	if err != nil {
		t.Fatal(err)
	}
	var r wire.Report
	w.awaitLog(0, "daemon refused")
	if w.want("inspect", m, &r); r.Phase != wire.PhaseExited || r.Status != 3 || r.Reason != "" {
		t.Errorf("got %+v", r)
	}
}

// Output that has left the ring before a client had it is counted, once.
func TestReportOfGap(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 1 << 20}, func(w *world) {
		a := w.attach("a@x")
		a.hangUp()
		w.print(lines(3 << 20))
		a.resume()
		w.print("present")
		a.awaitOutput("present")
		if frames, _ := a.lost(); frames == 0 {
			t.Error("nothing was lost")
		}
		if r := w.report(); r.Gaps != 1 {
			t.Errorf("%d gaps, want 1", r.Gaps)
		}
	})
}
