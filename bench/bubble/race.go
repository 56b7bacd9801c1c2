//go:build race

package bubble

import "runtime"

// Bubbles whose goroutines set timers on several processors may end a program that has the race detector: all
// these timers run as one thread of the detector (https://go.dev/issue/78156, Go 1.26).
func init() { runtime.GOMAXPROCS(1) }
