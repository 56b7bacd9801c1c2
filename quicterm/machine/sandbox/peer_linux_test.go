package sandbox

import (
	"os"
	"testing"
)

// What confines the daemon as well confines nobody out of grants.
func TestBeyond(t *testing.T) {
	own, err := readConfinement("self")
	if err != nil {
		t.Fatal(err)
	}
	boxed := own
	boxed.noNewPrivs, boxed.seccomp, boxed.filters, boxed.bounding = true, 2, 3, 0
	if got := boxed.beyond(boxed); got != "" {
		t.Errorf("in the same container: %s", got)
	}
	if got := own.beyond(boxed); got != "" {
		t.Errorf("asked from outside: %s", got)
	}
	more := boxed
	more.filters++
	if got := more.beyond(boxed); got != "a seccomp filter" {
		t.Errorf("a sandbox in a container: %q", got)
	}
	elsewhere := own
	if elsewhere.root, err = os.Stat(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if got := elsewhere.beyond(own); got != "another root directory" {
		t.Errorf("in another root directory: %q", got)
	}
}
