//go:build linux

package record

import (
	"context"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/trace"
	"github.com/quicterm/quicterm/bench/work"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// begins is what a session prints when the program begins. What comes before is not recorded.
const begins = "\x1bc"

// open runs the script's program in a session of a daemon of its own, over loopback. The program
// takes the place of the session's own shell, which the server's hints know. It does so at once:
// the holder reads the name of a shell while that is new.
func (r *recorder) open(t rig.T, bin string, s *Script, home string) {
	h := rig.NewHost(t, bin)
	h.Start()
	start := "cd " + home + " && exec env -i"
	for _, v := range environment(home) {
		start += " '" + v + "'"
	}
	h.Write("program", `printf '\033c'; exec `+s.Run)
	h.Write("start", start+" /bin/sh "+h.Path("program"))
	c, err := work.LibraryClient(h.Addr, h.Dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxRecording)
	r.session, err = c.Attach(ctx, &wire.Attach{
		Mode: wire.ModeCreate, PTY: true, Size: wire.Size{Cols: uint16(s.Cols), Rows: uint16(s.Rows)},
	}, client.Streams{Stdout: r, Hinted: r.hinted})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	if _, _, err := r.session.TryWrite([]byte("exec /bin/sh " + h.Path("start") + "\r")); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		r.session.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		c.Kill(ctx, r.session.Name())
		cancel()
		<-ended
	})
	for deadline := time.Now().Add(rig.Patience); !r.started(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the program does not begin")
		}
	}
}

func (r *recorder) started() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.began.IsZero()
}

// hinted records a hint. Its number of the last input counts the inputs, not their frames.
func (r *recorder) hinted(h wire.Hint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	frame := h.In
	for h.In = 0; int(h.In) < len(r.inputs) && r.inputs[h.In].frame <= frame; h.In++ {
	}
	r.hint = h
	if !r.began.IsZero() && !r.over {
		r.add(trace.Hint, []byte(trace.FormatHint(h)))
	}
}
