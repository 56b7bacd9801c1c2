//go:build linux || darwin

package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// When the ring overflows, the client says exactly how much output is lost.
func TestOverflow(t *testing.T) {
	h := newHost(t)
	h.Settings["buffer_size"] = `"512KiB"`
	h.Start()
	x := h.Shell(h.Addr, "-s", "full")
	x.Run("cd "+h.Dir+"; mkfifo go done", "mkfifo")
	x.Send("read x < go; seq 1000000 1300000; echo the-''end; echo > done\r~.")
	x.Exit()
	// Without a client, the program does not wait.
	if out, err := h.QT("connect", fmt.Sprintf("cd %s; echo > go; cat done", h.Dir)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	y := rig.Open(t, h.QT("attach", "full"))
	y.Expect(`about \d+ lines that were printed while no client was attached are not shown; what the server kept of them: qt attach --replay raw `)
	y.Expect(`1299999\r\n1300000\r\nthe-end`)
	y.Send("\r~.")
	y.Exit()
	y = rig.Open(t, h.QT("attach", "--replay", "raw", "full"))
	y.Expect(`\d+ bytes of output lost, the server has kept no more \(frames \d+ to \d+\)`)
	y.Expect("the-end") // a longer pattern, searched with each read, takes long
	if kept := y.Out.String()[:y.Read]; !strings.HasSuffix(kept, "1299999\r\n1300000\r\nthe-end") {
		t.Errorf("the output that was kept ends with %q", kept[max(0, len(kept)-100):])
	}
	y.Run("echo on", "on")
}

// After an outage with much output, the title shows how much is left, and ~> skips it:
// the client says exactly how much is missing, and the prompt appears.
func TestSkip(t *testing.T) {
	h := newHost(t)
	h.Client["compression"] = `"off"`
	h.Start()
	link := netem.Config{Delay: 10 * time.Millisecond, Rate: 2e6, Queue: 1 << 20}
	p := h.Proxy(link)
	x := h.Shell(p.Addr())
	x.Run("cd "+h.Dir+"; mkfifo go done", "mkfifo")
	x.Send("read x < go; seq -f '%.0f of many lines to come' 1 400000; echo > done\r")
	x.Expect("done\r\n")
	p.Set(netem.Config{Down: true})
	h.Stop(syscall.SIGKILL) // or the program would wait for the client until stallLimit of package holder
	h.Start()
	if out, err := h.QT("connect", fmt.Sprintf("cd %s; echo > go; cat done", h.Dir)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.Set(link)
	x.Expect(`\x1b\]2;qt: catching up, [0-9.]+ MB left`)
	x.Send("\r~>")
	found := x.Expect(`\[qt: (\d+) bytes of output skipped`)
	x.Run("echo here", "here")
	shown := x.Out.String()
	if strings.Contains(shown, "399000 of many") {
		t.Error("the output was not skipped")
	}
	if n, err := strconv.Atoi(found[1]); err != nil || n < 1<<20 {
		t.Errorf("%s bytes were skipped, want most of 12 MB", found[1])
	}
	if titles := regexp.MustCompile(`MB left`).FindAllString(shown, -1); len(titles) > 60 {
		t.Errorf("the title was set %d times", len(titles))
	}
}

// With flood = "skip", a program does not wait for a slow path: its client gets the screen in place
// of what it would be far behind with, and says what that leaves out.
func TestFlood(t *testing.T) {
	h := newHost(t)
	h.Client["compression"] = `"off"`
	h.Client["flood"] = `"skip"`
	h.Start()
	p := h.Proxy(netem.Config{Delay: 10 * time.Millisecond, Rate: 5e5, Queue: 1 << 18})
	x := h.Shell(p.Addr())
	x.Send("seq -f '%.0f of many lines to come' 1 60000; echo the-''end\r") // half a minute at this rate
	x.Expect(`\[qt: \d+ bytes of output left out, this client was too far behind \(frames \d+ to \d+\)\]`)
	x.Expect("60000 of many lines to come[^\r]*(\r\n)?the-end")
	x.Run("echo on", "on")
}
