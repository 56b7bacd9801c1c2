//go:build linux || darwin

package holder

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func recordInto(t *testing.T, log io.Writer) *recording {
	t.Helper()
	launch := &wire.Launch{
		Name: "work", PTY: true, Size: wire.Size{Cols: 90, Rows: 30}, Env: []string{"TERM=vt100"},
		Recording: wire.RecordingRequired, RecordingDir: filepath.Join(t.TempDir(), "made/for/it"),
	}
	r, err := newRecording(launch, time.Now(), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The recording has each frame once, also if it is drawn again, says what is missing, and gets the
// rest at the end.
func TestRecording(t *testing.T) {
	r := recordInto(t, io.Discard)
	ring := buffer.NewRing(0)
	add := func(kind buffer.Type, payload []byte) { ring.Append(kind, payload) }
	add(wire.Resize, wire.Sizing{Size: wire.Size{Cols: 80, Rows: 24}}.Append(nil))
	for _, text := range []string{"one ", "gone", "two "} {
		add(wire.Stdout, []byte(text))
	}
	var frames []buffer.Frame
	for b, _ := ring.Slice(1, 1<<20); len(b) > 0; {
		f, n, err := buffer.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		frames, b = append(frames, f), b[n:]
	}
	for _, i := range []int{0, 1, 0, 1, 3, 1, 3} {
		r.frame(frames[i])
	}
	add(wire.Stdout, []byte("three"))
	add(wire.Exit, wire.ExitStatus{Status: 7}.Append(nil))
	add(wire.Stdout, []byte("after the end"))
	r.finish(ring)

	file, err := os.Open(r.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	h, events, err := asciicast.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	if h.Cols != 90 || h.Rows != 30 || h.Term != "vt100" || h.Title != "work" {
		t.Errorf("header %+v", h)
	}
	var got []string
	for _, e := range events {
		got = append(got, string(e.Code)+e.Data)
	}
	want := []string{"r80x24", "oone ", "moutput is missing (frames 3 to 3)", "otwo ", "othree", "x7"}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// A session that must be recorded ends when it cannot be: its client is told why, and nothing that is
// typed or printed after that goes on.
func TestNotRecorded(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		r := recordInto(t, io.Discard)
		w.locked(func(h *Holder) { h.emulator.recording = r })
		w.program.IgnoreSignals()
		w.wg.Go(func() {
			if got, _ := io.ReadAll(w.program.In); len(got) > 0 {
				t.Errorf("the program was given %q", got)
			}
		})
		a := w.attach("a@x")
		w.print("recorded ")
		time.Sleep(time.Second)
		r.file.Close() // it is as if the disk were full
		w.print("the last ")
		time.Sleep(time.Second)
		if got := w.program.Signals(); !slices.Equal(got, []syscall.Signal{syscall.SIGHUP}) {
			t.Errorf("the program got the signals %v", got)
		}
		a.write("typed")
		w.print("secret")
		w.program.End(1)
		exit := a.awaitExitStatus()
		if want := "ended, because it could not be recorded: file already closed"; exit.Reason != want {
			t.Errorf("the reason is %q, want %q", exit.Reason, want)
		}
		if got := a.output(); got != "recorded the last " {
			t.Errorf("the client got %q", got)
		}
	})
}

// An error of writing is logged once.
func TestRecordingFails(t *testing.T) {
	var log strings.Builder
	r := recordInto(t, &log)
	r.file.Close()
	for seq := range uint64(3) {
		r.frame(buffer.Frame{Seq: seq + 1, Type: wire.Stdout, Payload: []byte("text")})
	}
	if n := strings.Count(log.String(), "the session is not recorded any more"); n != 1 {
		t.Errorf("%d messages: %s", n, &log)
	}
	r.finish(buffer.NewRing(0))
}
