package version

import (
	"os/exec"
	"strings"
	"testing"
)

// make build puts the commit into the programs, whatever GOFLAGS says.
func TestBuildHasCommit(t *testing.T) {
	if err := exec.Command("git", "rev-parse", "--verify", "-q", "HEAD").Run(); err != nil {
		t.Skip("no checkout of git")
	}
	build := exec.Command("make", "-n", "-C", "../..", "build")
	build.Env = append(build.Environ(), "GOFLAGS=-buildvcs=false")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Skipf("no make: %v, %s", err, out)
	}
	if !strings.Contains(string(out), "-buildvcs=true") {
		t.Errorf("make build runs\n%s", out)
	}
}
