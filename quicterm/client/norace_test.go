//go:build !race

package client

// oneProcessor does nothing: only the race detector needs it.
func oneProcessor() (restore func()) { return func() {} }
