//go:build !race

package quic_test

// oneProcessor does nothing: only the race detector needs it.
func oneProcessor() (restore func()) { return func() {} }
