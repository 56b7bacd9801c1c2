package memory

import (
	"runtime"
	"runtime/debug"
	"testing"
)

var garbage []byte

// A daemon that uses little memory collects garbage when there are some MiB of it.
func TestCollectGarbage(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	before := OfProcess()
	CollectGarbage()
	defer func() { ballast = nil }()
	if grown := int64(OfProcess() - before); grown > ballastSize/2 {
		t.Errorf("the process has grown by %d bytes", grown)
	}
	runtime.GC()
	var first, last runtime.MemStats
	runtime.ReadMemStats(&first)
	for range 100 << 10 {
		garbage = make([]byte, 1<<10)
	}
	runtime.ReadMemStats(&last)
	if n := last.NumGC - first.NumGC; n > 50 {
		t.Errorf("%d collections of 100 MiB of garbage, want at most 50", n)
	}
}
