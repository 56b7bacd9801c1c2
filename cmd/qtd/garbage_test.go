package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// A process that uses little memory leaves more garbage than one that uses much, of what it uses.
func TestLimitGarbage(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	limitGarbage()
	await := func(why string, right func(percent int) bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			runtime.GC()
			sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
			metrics.Read(sample)
			if percent := int(sample[0].Value.Uint64()); right(percent) {
				return
			} else if time.Now().After(deadline) {
				t.Fatalf("%s: garbage of %d %%", why, percent)
			}
		}
	}
	await("as it begins", func(percent int) bool { return percent > 2*garbagePercent })
	much := make([]byte, 100*leastGarbage/garbagePercent)
	await("with much memory", func(percent int) bool { return percent == garbagePercent })
	runtime.KeepAlive(much)
	await("with little again", func(percent int) bool { return percent > 2*garbagePercent })
}
