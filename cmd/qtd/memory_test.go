package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

var garbage []byte

// A process that uses little memory collects garbage when there are some MiB of it.
func TestLimitMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	limitMemory()
	defer func() { ballast = nil }()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 << 10 {
		garbage = make([]byte, 1<<10)
	}
	runtime.ReadMemStats(&after)
	if n := after.NumGC - before.NumGC; n > 25 {
		t.Errorf("%d collections of 100 MiB of garbage, want at most 25", n)
	}
}
