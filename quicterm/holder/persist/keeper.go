//go:build linux || darwin

package persist

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A session on a terminal may keep its screen on disk, for when its process is gone.
// Run alone writes it: a disk that is slow, full or hung costs the session nothing but its record.
const (
	// MaxScreen bounds the bytes of the screen with its scrollback, and MaxCommand those of the command: a record fits
	// one message.
	MaxScreen  = 128 << 10
	MaxCommand = 32 << 10

	// Delay is how much later than a change the record of a session is written: a burst of output is one screen.
	Delay = 5 * time.Second

	// diskTime bounds how long the end of a session waits for the disk with its record: it may hang. Nothing waits
	// for the holder then, and a record that is left would show a session that has exited as lost.
	diskTime = 2 * Delay
)

// A Keeper writes the record of a session. A nil one keeps nothing.
type Keeper struct {
	dir     string
	id      string // of the session
	log     *slog.Logger
	end     <-chan struct{} // closed when the session is over
	record  func() (lost *wire.Lost, err error)
	changed chan struct{} // wakes Run; buffers one
	last    chan struct{} // closed when Run shall write at once, and then end
	done    chan struct{} // closed when Run has ended
	cleared atomic.Bool   // the record on disk has history that a client has cleared
	held    *os.File      // the record, locked; Run's until it has ended
}

// NewKeeper returns the keeper of a session's record in a directory. record returns the record, or nil if the screen is
// not known yet; end is closed when the session is over.
func NewKeeper(
	dir string, id wire.SessionID, log *slog.Logger, end <-chan struct{}, record func() (*wire.Lost, error),
) *Keeper {
	return &Keeper{
		dir: dir, id: id.String(), log: log, end: end, record: record,
		changed: make(chan struct{}, 1), last: make(chan struct{}), done: make(chan struct{}),
	}
}

// Change makes Run write the record soon.
func (k *Keeper) Change() {
	if k == nil {
		return
	}
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Clear removes the record, which has history that a client has cleared, before Run writes the next.
func (k *Keeper) Clear() {
	if k != nil {
		k.cleared.Store(true)
		k.Change()
	}
}

// Run writes the record Delay after a change, until the session is over. It tries a disk that has failed as often.
func (k *Keeper) Run() {
	defer close(k.done)
	var due <-chan time.Time
	for failed, last := false, false; !last; {
		select {
		case <-k.end:
			return
		case <-k.changed:
			if due == nil {
				due = time.After(Delay)
			}
			continue
		case <-due:
		case <-k.last:
			last = true
		}
		due = nil
		err := k.write()
		if err != nil {
			due = time.After(Delay)
		}
		if err != nil && !failed {
			k.log.Error("the session is not kept on disk, and continues", "error", err)
		} else if err == nil && failed {
			k.log.Info("the session is kept on disk again")
		}
		failed = err != nil
	}
}

// write writes the record. Before that it removes one with history that was cleared.
func (k *Keeper) write() error {
	store, err := openStore(k.dir)
	if err != nil {
		return err
	}
	defer store.Close()
	if k.held == nil {
		if _, err := store.Lost(time.Now()); err != nil {
			k.log.Warn("old records cannot be removed", "error", err)
		}
	}
	if k.cleared.Swap(false) {
		if err := k.discard(store); err != nil {
			k.cleared.Store(true)
			return err
		}
	}
	lost, err := k.record()
	if err != nil || lost == nil {
		return err
	}
	b, err := wire.EncodeLost(lost)
	if err != nil {
		return err
	}
	held, err := store.Write(k.id, b)
	if err == nil {
		k.held.Close() // nothing if it is nil
		k.held = held
	}
	return err
}

// discard removes the record, if there is one.
func (k *Keeper) discard(store *Store) error {
	if k.held == nil {
		return nil
	}
	if err := store.Discard(k.id); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// WriteLast writes the record for the last time. It blocks until that is done, at most for diskTime.
func (k *Keeper) WriteLast() {
	close(k.last)
	select {
	case <-k.done:
	case <-time.After(diskTime):
	}
}

// Remove removes the record of a session that is over. It blocks until that is done, at most for diskTime.
func (k *Keeper) Remove() {
	if k == nil {
		return
	}
	removed := make(chan error, 1)
	go func() { // it ends with the process, if the disk hangs
		<-k.done
		store, err := openStore(k.dir)
		if err == nil {
			err = k.discard(store)
			store.Close()
		}
		k.held.Close()
		removed <- err
	}()
	select {
	case <-time.After(diskTime):
		k.log.Error("the record of the session may be left: the disk does not answer")
	case err := <-removed:
		if err != nil {
			k.log.Error("the record of the session cannot be removed", "error", err)
		}
	}
}

// openStore opens the directory of this account's records, and makes it.
func openStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := rundir.Open(dir)
	if err != nil {
		return nil, err
	}
	store, err := New(root)
	if err != nil {
		root.Close()
	}
	return store, err
}
