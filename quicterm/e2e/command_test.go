//go:build linux || darwin

package e2e

import (
	"bytes"
	crand "crypto/rand"
	"errors"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// noTerminal starts a process without a controlling terminal, so that it cannot ask
// the person who runs the tests.
var noTerminal = &syscall.SysProcAttr{Setsid: true}

// exitStatus returns the exit status of a command that was run.
func exitStatus(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err == nil {
		return 0
	}
	if !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return exit.ExitCode()
}

// wantOutput runs a command, which must succeed and print exactly this.
func wantOutput(t *testing.T, cmd *exec.Cmd, want string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
}

// wantError runs a command of qt, which must fail by itself: with status 255, no
// output, and one line on standard error that matches why.
func wantError(t *testing.T, cmd *exec.Cmd, why string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, &out, &errs
	if got := exitStatus(t, cmd.Run()); got != 255 {
		t.Errorf("exit status %d, want 255", got)
	}
	if out.Len() > 0 {
		t.Errorf("standard output: %q, want none", out.String())
	}
	line := errs.String()
	if strings.Count(line, "\n") != 1 || !regexp.MustCompile(`^qt: .*`+why).MatchString(line) {
		t.Errorf("standard error: %q, want one line that matches %q", line, why)
	}
}

// newInstance returns the number of a client. Two clients with one number are one client, which
// asks again.
func newInstance() (id wire.InstanceID) {
	crand.Read(id[:])
	return id
}

// random returns n pseudo-random bytes, the same at each call.
func random(n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	source.Read(b)
	return b
}
