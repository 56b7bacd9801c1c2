//go:build linux || darwin

package holder

import (
	"io"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Program is what runs in a session, with our ends of its streams. All methods except
// Wait and the streams return at once.
type Program interface {
	// On a terminal, Stdin and Stdout are the terminal, and Stderr is nil.
	Stdin() io.WriteCloser
	Stdout() io.ReadCloser
	Stderr() io.ReadCloser
	// Drained reports whether all that was printed on the terminal so far are the first n bytes
	// that Reads of Stdout have returned.
	Drained(n uint64) bool
	// Modes returns what a [wire.Hint] tells of the terminal, unless there is none or it was closed.
	Modes(now time.Time) (flags wire.TerminalFlags, context uint16, ok bool)
	// Taken reports whether the program has read all that it was given, except a line that has no end yet. Reads reports
	// whether it waits for more. Where that is not certain, it counts how long the terminal has been still. Both are false
	// where the system does not tell. They may take milliseconds.
	Taken() bool
	Reads(now time.Time, still time.Duration) bool
	// Foreground returns the name of the first process in the foreground of the terminal, and when it was started. Both
	// are zero if that is not known.
	Foreground() (name string, started time.Time)
	// Resize changes the size of the terminal and tells the program.
	Resize(wire.Size) error
	// Signal sends a signal to the processes in the foreground.
	Signal(syscall.Signal)
	// Hangup sends a signal to the whole program, and continues what is stopped.
	Hangup(syscall.Signal)
	// Wait blocks until the program ends. It returns the exit status as a shell has it,
	// and the signal that killed the program, or 0. It is called once.
	Wait() (status byte, killed syscall.Signal)
	// Close closes our ends of the streams: reads and writes that block fail.
	Close()
}
