// Package bubble lets tests run bubbles of package testing/synctest under the race detector. It is imported
// for that alone, by tests whose goroutines set timers in a bubble.
package bubble
