package terminal

import "os"

// A watchdog does nothing here: consoles restore their modes when a program ends.
type watchdog struct{}

func newWatchdog(_, _ *os.File) *watchdog { return nil }

func (*watchdog) set([]byte) {}
func (*watchdog) tell()      {}
func (*watchdog) dismiss()   {}
