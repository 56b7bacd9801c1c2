//go:build linux || darwin

package holder

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A session on a terminal may keep its screen on disk (package persist), for when its process is gone.
// loop alone writes it: a disk that is slow, full or hung costs the session nothing but its record.
const (
	// maxKeptScreen bounds the bytes of the screen with its scrollback, and maxKeptCommand those of the command:
	// a record fits one message.
	maxKeptScreen  = 128 << 10
	maxKeptCommand = 32 << 10
)

// A keeper writes the record of a session.
type keeper struct {
	dir     string
	id      string // of the session
	log     *slog.Logger
	end     <-chan struct{}                     // closed when the session is over
	record  func() (lost *wire.Lost, err error) // the record; nil if the screen is not known yet
	changed chan struct{}                       // wakes loop; buffers one
	last    chan struct{}                       // closed when loop shall write at once, and then end
	done    chan struct{}                       // closed when loop has ended
	cleared atomic.Bool                         // the record on disk has history that a client has cleared
	held    *os.File                            // the record, locked; loop's until it has ended
}

func (k *keeper) change() {
	if k != nil {
		wake(k.changed)
	}
}

// loop writes the record keepDelay after a change, until the session is over. It tries a disk that has failed as often.
func (k *keeper) loop() {
	defer close(k.done)
	var due <-chan time.Time
	for failed, last := false, false; !last; {
		select {
		case <-k.end:
			return
		case <-k.changed:
			if due == nil {
				due = time.After(keepDelay)
			}
			continue
		case <-due:
		case <-k.last:
			last = true
		}
		due = nil
		err := k.write()
		if err != nil {
			due = time.After(keepDelay)
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
func (k *keeper) write() error {
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
func (k *keeper) discard(store *persist.Store) error {
	if k.held == nil {
		return nil
	}
	if err := store.Discard(k.id); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeLast writes the record for the last time. It blocks until that is done, at most for diskTime.
func (k *keeper) writeLast() {
	close(k.last)
	select {
	case <-k.done:
	case <-time.After(diskTime):
	}
}

// remove removes the record of a session that is over. It blocks until that is done, at most for diskTime.
func (k *keeper) remove() {
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
func openStore(dir string) (*persist.Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := rundir.Open(dir)
	if err != nil {
		return nil, err
	}
	store, err := persist.New(root)
	if err != nil {
		root.Close()
	}
	return store, err
}

// wake wakes the loop that waits for a channel, which buffers one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
