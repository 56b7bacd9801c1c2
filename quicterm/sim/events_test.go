//go:build linux || darwin

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hangTime is how long a world may take in real time: the longest take a minute, and more on a busy machine.
const hangTime = 10 * time.Minute

// keepEvents returns a file for all events of the world of a seed. done keeps it if the world has failed. A program for
// wasip1 tells the same again, and needs no file. A world that hangs ends the program.
func keepEvents(t *testing.T, seed uint64) (events *os.File, done func(*world)) {
	t.Helper()
	name := "nowhere"
	if runtime.GOARCH != "wasm" {
		f, err := os.CreateTemp("", fmt.Sprintf("quicterm-sim-%d-*.trace", seed))
		if err != nil {
			t.Fatal(err)
		}
		name, events = f.Name(), f
	}
	hang := time.AfterFunc(hangTime, func() {
		panic(fmt.Sprintf("seed %d: the world has not ended in %v; its events are in %s", seed, hangTime, name))
	})
	return events, func(w *world) {
		hang.Stop()
		events.Close() // nothing if it is nil
		if len(w.failures) > 0 {
			t.Logf("seed %d: its %d events are in %s", seed, w.steps, name)
		} else if events != nil {
			os.Remove(name)
		}
	}
}

// event records something that has happened.
func (w *world) event(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.steps++; w.events != nil {
		fmt.Fprintf(w.events, "%d %v %s\n", w.steps, time.Since(w.begun), fmt.Sprintf(format, args...))
	}
}

// trace tells the story.
func (w *world) trace(format string, args ...any) {
	w.event(format, args...)
	if w.story != nil {
		w.story(fmt.Sprintf("%12v ", time.Since(w.begun).Round(time.Millisecond)) + fmt.Sprintf(format, args...))
	}
}

// A processLog makes what a process logs events, and reads what a holder logs, as the person does who runs the machine.
type processLog struct {
	world   *world
	who     string
	holder  bool
	session *session // of a holder, once it is known
}

// logOf returns the log of a process.
func (w *world) logOf(who string) *slog.Logger { return slog.New(processLog{world: w, who: who}) }

func (processLog) Enabled(context.Context, slog.Level) bool { return true }
func (l processLog) WithGroup(string) slog.Handler          { return l }

func (l processLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		l.who += fmt.Sprintf(" %v", a.Value)
		if a.Key == "session" && l.holder {
			l.session = l.world.session(a.Value.String())
		}
	}
	return l
}

func (l processLog) Handle(_ context.Context, r slog.Record) error {
	var attrs strings.Builder
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&attrs, " %v", a)
		return true
	})
	l.world.event("%s: %s%s", l.who, r.Message, attrs.String())
	if l.session != nil {
		l.readHolder(r.Message)
	}
	return nil
}
