//go:build linux

package measure

import "time"

// MaxStall is the longest stall with which a figure is still believed. With a longer one
// the machine was too busy.
const MaxStall = 20 * time.Millisecond

// WatchStalls measures how late a sleeping goroutine of this process wakes, until the
// returned function is called. That returns the longest delay.
func WatchStalls() func() time.Duration {
	done := make(chan struct{})
	worst := make(chan time.Duration)
	go func() {
		longest := time.Duration(0)
		for {
			select {
			case <-done:
				worst <- longest
				return
			default:
			}
			const nap = time.Millisecond
			before := time.Now()
			time.Sleep(nap)
			longest = max(longest, time.Since(before)-nap)
		}
	}()
	return func() time.Duration {
		close(done)
		return <-worst
	}
}
