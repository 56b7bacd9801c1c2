//go:build linux || darwin

package holder

import (
	"bytes"
	"log/slog"
	"sync"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// eventSize is more than an event takes on disk beside its output.
const eventSize = 64

// A keeper keeps the record of a session.
type keeper struct {
	config wire.Persist
	log    *slog.Logger

	changed chan struct{} // something is not kept yet; buffers one
	flush   chan chan struct{}
	screens chan kept // answers wanted
	done    chan struct{}

	// keepLoop alone uses these.
	record *persist.Record
	key    []byte
	failed bool // and that was logged

	mu      sync.Mutex
	next    uint64          // the first frame that was not drawn yet: after a fault some are drawn again
	wanted  bool            // drawLoop is to send a screen
	cleared bool            // what was kept must not be kept any longer
	events  []persist.Event // output that was drawn and is not written yet, if there is a log
	size    int             // of that
	skipped bool            // it was too much to be written
}

// A kept is a screen and the output before it that is not written yet.
type kept struct {
	state   persist.State
	events  []persist.Event
	skipped bool
	cleared bool
}

// newKeeper returns the keeper that a launch asks for, or nil.
func newKeeper(launch *wire.Launch, log *slog.Logger) *keeper {
	if launch.Persist == nil || !launch.PTY {
		return nil
	}
	return &keeper{
		config: *launch.Persist, log: log,
		changed: make(chan struct{}, 1), flush: make(chan chan struct{}), screens: make(chan kept, 1), done: make(chan struct{}),
	}
}

// change makes keepLoop write what has changed.
func (k *keeper) change() {
	if k == nil {
		return
	}
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// frame keeps a frame that is drawn, in a log.
func (k *keeper) frame(f buffer.Frame) {
	if k == nil || !k.config.Log {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.Seq < k.next {
		return
	}
	k.next = f.Seq + 1
	var e persist.Event
	switch f.Type {
	case wire.Stdout:
		e.Output = f.Payload
	case wire.Resize:
		size, _, err := wire.ParseSizing(f.Payload)
		if err != nil {
			return
		}
		e.Cols, e.Rows = size.Cols, size.Rows
	default:
		return
	}
	// Most of a flood would be removed as soon as it is written.
	if k.size += len(e.Output) + eventSize; int64(k.size) > k.config.Bytes/16 {
		k.events, k.skipped = nil, true
		return
	}
	e.Output = bytes.Clone(e.Output)
	k.events = append(k.events, e)
}

// screenSize returns how large a screen may be. There are two files at a time. One of a log ends when it has
// 3/8 of the size, and 1/16 may be appended then twice.
func (k *keeper) screenSize() int {
	size := k.config.Bytes / 2
	if k.config.Log {
		size = k.config.Bytes / 4
	}
	return int(min(size, session.MaxSnapshot))
}

// take returns the output that is not written yet.
func (k *keeper) take() (events []persist.Event, skipped bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	events, skipped = k.events, k.skipped
	k.events, k.size, k.skipped = nil, 0, false
	return events, skipped
}

// flooded reports whether there was more output than is written to the log.
func (k *keeper) flooded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.skipped
}

// clear removes what was kept, with the next screen that is kept or cannot be: after keepMost at the latest, unless
// the disk does not answer.
func (k *keeper) clear() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.cleared = true
	k.mu.Unlock()
	k.change()
}

func (k *keeper) wants() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wanted
}
