package memory

import (
	"runtime/debug"
	"runtime/metrics"
)

const (
	// garbagePercent is how much garbage a daemon has when it collects it, of the memory in use. Logins leave more
	// garbage than it has memory, and relaying leaves little: less memory is worth the time of more collections.
	garbagePercent = 25

	ballastSize = 16 << 20
)

// ballast counts as memory in use, so no less than 4 MiB of garbage is worth a collection. Without it strangers
// who flood a daemon with few clients, which uses 3 MiB, have it collect 100 times a second: a third of its
// time. Nothing is written to it, so the kernel gives it no pages.
var ballast []byte

// CollectGarbage makes the daemon collect garbage when it exceeds 25 % of the memory in use, but at least 4 MiB.
// Call it once, at the start.
func CollectGarbage() {
	debug.SetGCPercent(garbagePercent)
	ballast = make([]byte, ballastSize)
}

// OfProcess returns how many bytes of memory this process has from the system, without the ballast.
func OfProcess() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64() - uint64(len(ballast))
}
