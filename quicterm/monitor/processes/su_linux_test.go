package processes

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/doctor"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
)

// suAs returns a way to start su that runs a script in its place, and counts that.
func suAs(t *testing.T, script string) (start func(*exec.Cmd) error, count *int) {
	t.Helper()
	if _, err := pam.Find(t.Context(), nil); err != nil {
		t.Skip(err)
	}
	count = new(int)
	return func(cmd *exec.Cmd) error {
		*count++
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", "echo util-linux\n" + script}, cmd.Args...)
		return cmd.Start()
	}, count
}

// A trial of su that fails by chance is an error for its client only: it makes no session start without PAM.
func TestSuFailsByChance(t *testing.T) {
	t.Parallel()
	killed, _ := suAs(t, "kill -9 $$")
	childKilled, _ := suAs(t, "exit 137")
	for what, start := range map[string]func(*exec.Cmd) error{
		"no process":            func(*exec.Cmd) error { return syscall.EAGAIN },
		"a signal":              killed,
		"a signal to its child": childKilled,
	} {
		f := new(suFinder)
		if path, err := f.find(t.Context(), start, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: sessions start with %q", what, path)
		}
		if path, err := f.find(t.Context(), nil, slog.New(slog.DiscardHandler)); err != nil || !strings.HasSuffix(path, "/su") {
			t.Errorf("after %s: got %q, %v", what, path, err)
		}
	}
	// Its time is over.
	slow, _ := suAs(t, "exec sleep 60")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := pam.Find(ctx, slow); err == nil || errors.As(err, new(pam.Unusable)) || errors.As(err, new(pam.Absent)) {
		t.Errorf("su that does not end: %v", err)
	}
	if _, words, state := HowSessionsStart(ctx, true, slow); state != doctor.Fail || !strings.Contains(words, "so none start") {
		t.Errorf("the doctor says %v, %s", state, words)
	}
}

// A client that leaves while su is tried does not end that.
func TestSuClientLeaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start, count := suAs(t, "echo >"+dir+"/started; while [ ! -e "+dir+"/go ]; do sleep 0.01; done")
	f := new(suFinder)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := f.find(ctx, start, slog.New(slog.DiscardHandler))
		left <- err
	}()
	for {
		if _, err := os.Stat(dir + "/started"); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the client that leaves gets %v", err)
	}
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	none := func(*exec.Cmd) error { return errors.New("tried again") }
	path, err := f.find(t.Context(), none, slog.New(slog.DiscardHandler))
	if err != nil || !strings.HasSuffix(path, "/su") || *count != 2 {
		t.Errorf("the next client gets %q, %v; su was started %d times", path, err, *count)
	}
}

// If PAM fails for certain, no session starts, and su is not tried for each client.
func TestSuDoesNotWork(t *testing.T) {
	t.Parallel()
	start, count := suAs(t, "exit 1")
	f := new(suFinder)
	var log strings.Builder
	for range 2 {
		path, err := f.find(t.Context(), start, slog.New(slog.NewTextHandler(&log, nil)))
		if path != "" || err == nil {
			t.Errorf("got %q, %v", path, err)
		}
	}
	if path, err := decideLogin("", pam.Absent("there is no su")); path != "" || err != nil {
		t.Errorf("without su: got %q, %v", path, err)
	}
	if *count != 1 {
		t.Errorf("su was tried %d times", *count)
	}
	f.at = f.at.Add(-2 * refindTime)
	f.find(t.Context(), start, slog.New(slog.NewTextHandler(&log, nil)))
	if got := strings.Count(log.String(), "PAM cannot open sessions"); *count != 2 || got != 1 {
		t.Errorf("the same is logged %d times by %d trials", got, *count)
	}
}
