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
	// keepQuiet is how long a terminal must be silent before its screen is kept: a burst of output is one screen.
	keepQuiet = time.Second

	// keepMost is how old the kept screen of a busy terminal may be.
	keepMost = 10 * time.Second

	// keepRetry is the time before a disk that has failed is tried again.
	keepRetry = 30 * time.Second

	// keepEnd bounds how long a holder that the system stops waits for the disk.
	keepEnd = 2 * time.Second

	// removeTimeout bounds how long a holder waits for the disk when its session is over. Nothing waits for the
	// holder then, and a record that is left would show a session that has exited as lost.
	removeTimeout = 10 * time.Second

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

// loop writes the record when it has changed and the terminal was silent for keepQuiet, at most keepMost later,
// until the session is over.
func (k *keeper) loop() {
	defer close(k.done)
	changed, failed, last := k.changed, false, false
	var quiet, most <-chan time.Time
	for !last {
		select {
		case <-k.end:
			return
		case <-changed:
			if quiet = time.After(keepQuiet); most == nil {
				most = time.After(keepMost)
			}
			continue
		case <-quiet:
		case <-most:
		case <-k.last:
			last = true
		}
		changed, quiet, most = k.changed, nil, nil
		err := k.write()
		if err != nil {
			changed, quiet = nil, time.After(keepRetry)
		}
		if err != nil && !failed {
			k.log.Error("the session is not kept on disk, and continues", "error", err)
		} else if err == nil && failed {
			k.log.Info("the session is kept on disk again")
		}
		failed = err != nil
	}
}

// write writes the record. If it cannot, and the history was cleared, it removes the old one or tries that again.
func (k *keeper) write() (err error) {
	cleared := k.cleared.Swap(false)
	var lost *wire.Lost
	defer func() {
		if cleared && (err != nil || lost == nil) {
			k.cleared.Store(true)
		}
	}()
	if lost, err = k.record(); err != nil || lost == nil {
		return err
	}
	b, err := wire.EncodeLost(lost)
	if err != nil {
		return err
	}
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
	held, err := store.Write(k.id, b)
	if err != nil {
		if cleared {
			store.Discard(k.id)
		}
		return err
	}
	k.held.Close() // nothing if it is nil
	k.held = held
	return nil
}

// writeLast writes the record for the last time. It blocks until that is done, at most for keepEnd.
func (k *keeper) writeLast() {
	close(k.last)
	select {
	case <-k.done:
	case <-time.After(keepEnd):
	}
}

// remove removes the record of a session that is over. It blocks until that is done, at most for removeTimeout: a
// disk may hang.
func (k *keeper) remove() {
	if k == nil {
		return
	}
	removed := make(chan error, 1)
	go func() { // it ends with the process, if the disk hangs
		<-k.done
		if k.held == nil {
			removed <- nil
			return
		}
		defer k.held.Close()
		store, err := openStore(k.dir)
		if err == nil {
			err = store.Discard(k.id)
			store.Close()
		}
		removed <- err
	}()
	select {
	case <-time.After(removeTimeout):
		k.log.Error("the record of the session may be left: the disk does not answer")
	case err := <-removed:
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
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
