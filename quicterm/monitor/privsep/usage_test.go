//go:build linux || darwin

package privsep

import (
	"os"
	"testing"
	"time"
)

// What this process uses grows with what it opens and does.
func TestUsage(t *testing.T) {
	before := UsageOfProcess()
	for range 100 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	for begun := time.Now(); time.Since(begun) < 20*time.Millisecond; {
	}
	after := UsageOfProcess()
	// Other tests of the package may have their files open, or close them.
	if n := after.Descriptors - before.Descriptors; n < 50 || n > 150 {
		t.Errorf("%d descriptors more, want 100", n)
	}
	if after.CPU <= before.CPU {
		t.Errorf("CPU %v, then %v", before.CPU, after.CPU)
	}
}
