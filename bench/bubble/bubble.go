// Package bubble is imported for its effect: in a test program with the race detector it sets GOMAXPROCS
// to 1, without which bubbles of testing/synctest whose goroutines set timers may end the program
// (https://go.dev/issue/78156).
package bubble
