//go:build linux

package main

import "time"

// believed is the longest stall with which a figure is still believed: with more,
// the machine was too busy.
const believed = 20 * time.Millisecond

// watchStalls watches how long a goroutine that wants to run does not, until the
// function that it returns is called, which returns the longest time.
func watchStalls() func() time.Duration {
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
