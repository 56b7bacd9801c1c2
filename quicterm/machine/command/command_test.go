//go:build linux || darwin

package command

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// A program has nothing of this process's but what it is told, and its output and time are bounded.
func TestRun(t *testing.T) {
	t.Setenv("SECRET", "x")
	out, complaint, err := Run(t.Context(), nil, "/bin/sh", "-c", `pwd; echo "$SECRET" >&2; read -r line || exit 3`)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 || string(out) != "/\n" || string(complaint) != "\n" {
		t.Errorf("%q, %q, %v", out, complaint, err)
	}
	if out, _, err := Run(t.Context(), nil, "/bin/sh", "-c", "sleep 60 & echo x"); err != nil || string(out) != "x\n" {
		t.Errorf("a child that keeps the output: %q, %v", out, err)
	}
	for _, script := range []string{"exec yes", "exec yes >&2"} {
		out, complaint, err := Run(t.Context(), nil, "/bin/sh", "-c", script)
		if err == nil || len(out)+len(complaint) > maxOutput {
			t.Errorf("%s: %d bytes, %v", script, len(out)+len(complaint), err)
		}
	}
	late := errors.New("late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, late)
	defer cancel()
	if _, _, err := Run(ctx, nil, "/bin/sleep", "60"); !errors.Is(err, late) {
		t.Errorf("a program that hangs: %v", err)
	}
	if _, _, err := Run(t.Context(), func(*exec.Cmd) error { return late }, "/bin/true"); !errors.Is(err, late) {
		t.Errorf("another way to start: %v", err)
	}
}
