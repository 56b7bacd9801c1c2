//go:build race

package client

import "runtime"

// oneProcessor makes the program run on one processor until restore is called. With the race
// detector, bubbles of package synctest that run on several may end the program with
// "ThreadSanitizer: CHECK failed" (https://go.dev/issue/78156, Go 1.26).
func oneProcessor() (restore func()) {
	before := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(before) }
}
