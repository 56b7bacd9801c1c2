//go:build !unix

package terminal

import "os"

const watchdogOn, watchdogOff = "on", "off"

// A watchdog does nothing here: consoles restore their modes when a program ends.
type watchdog struct{}

func newWatchdog(_, _ *os.File) *watchdog { return nil }

func (*watchdog) set(string) {}
func (*watchdog) dismiss()   {}
