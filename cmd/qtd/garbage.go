package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// garbagePercent is how much garbage this process has when it collects it, of the memory that it uses.
	// Logins leave more garbage than the daemon has memory, and relaying leaves little: less memory is
	// worth the time of more collections.
	garbagePercent = 25

	// leastGarbage is the least garbage that is worth a collection, in bytes. A daemon with few clients uses 3
	// MiB: strangers who flood it would have it collect 100 times a second, which took a third of its time.
	leastGarbage = 4 << 20
)

// limitGarbage makes this process collect garbage as the constants say.
func limitGarbage() {
	debug.SetGCPercent(garbagePercent)
	now := garbagePercent
	adapt := func() {
		// Each change stops the process for a moment.
		if want := garbagePercentOf(liveMemory()); want > now+now/8 || want < now-now/8 {
			debug.SetGCPercent(want)
			now = want
		}
	}
	afterCollections(adapt)
}

// garbagePercentOf returns what to set for an amount of live memory, in bytes.
func garbagePercentOf(live uint64) int {
	return max(garbagePercent, int(100*leastGarbage/max(live, 1<<20)))
}

// liveMemory returns how much memory the last collection has found in use.
func liveMemory() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// afterCollections calls f after each collection, or after several, one call at a time.
func afterCollections(f func()) {
	type garbage struct{ self *garbage } // it has a pointer, so it shares its memory with nothing
	var again func(*garbage)
	again = func(g *garbage) {
		f()
		runtime.SetFinalizer(g, again)
	}
	runtime.SetFinalizer(new(garbage), again)
}
