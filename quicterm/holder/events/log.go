// Package events keeps what happens to a session for clients that follow it: the log of events, what of a program's
// output is one, and when a terminal is still. It is pure: the caller says what happens, and when.
package events

import (
	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxKept is how many events a Log keeps: those of some days with a person, or of 10 seconds with a program that
	// does little else.
	maxKept = 10_000

	// maxBytes bounds the memory of a Log.
	maxBytes = 1 << 20
)

// A Log numbers events, and keeps the newest.
type Log struct{ ring *buffer.Ring }

// NewLog returns an empty log, which takes no memory.
func NewLog() Log { return Log{buffer.NewRing(maxBytes)} }

// Ring returns the frames of the log. They are for reading alone.
func (l Log) Ring() *buffer.Ring { return l.ring }

// Append adds an event. Its texts are made printable.
func (l Log) Append(e wire.Event) {
	e.Text = wire.Printable(e.Text, wire.MaxEventText)
	e.Client, e.By = wire.Printable(e.Client, wire.MaxClient), wire.Printable(e.By, wire.MaxClient)
	l.append(wire.Happened, e.Encode())
}

// End adds the program's end. Nothing follows it.
func (l Log) End(exit wire.ExitStatus) { l.append(wire.Exit, exit.Append(nil)) }

func (l Log) append(t buffer.Type, payload []byte) {
	if n := l.ring.Append(t, payload); n > maxKept {
		l.ring.Release(n - maxKept + 1)
	}
}

// Clear drops all events.
func (l Log) Clear() { l.ring.Release(l.ring.Next()) }

// Find returns the frame with which the log goes on for a client that wants it from one on: the first that is kept, or
// the next, if that does not exist.
func (l Log) Find(from uint64) uint64 { return min(max(from, l.ring.First()), l.ring.Next()) }
