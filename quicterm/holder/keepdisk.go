//go:build linux || darwin

package holder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// keepEnd bounds how long a holder that ends waits for the disk.
	keepEnd = 2 * time.Second

	// maxKey bounds the size of a file with a key, minKey what is enough of one.
	maxKey, minKey = 4 << 10, 32
)

// write writes a screen to a new file. If not anew, the file before is kept, with the output up to the screen.
func (k *keeper) write(s *kept, anew bool) error {
	if s.state.Screen == nil {
		return fmt.Errorf("its screen takes more than %d bytes of persist_size", k.screenSize())
	}
	if !anew {
		if _, err := k.record.Append(s.events, nil, k.config.Sync); err != nil {
			return err
		}
	}
	return k.record.Begin(&s.state, k.key, !anew, k.config.Sync)
}

// open makes the record, unless there is one.
func (k *keeper) open(launch *wire.Launch) error {
	if k.record != nil {
		return nil
	}
	key, err := readKey(k.config.Key)
	if err != nil {
		return err
	}
	store, err := openStore(&k.config)
	if err != nil {
		return err
	}
	if err := store.Prune(time.Now(), k.config.TTL); err != nil {
		k.log.Warn("old records cannot be removed", "error", err)
	}
	if k.record, err = store.Create(launch.ID.String()); err != nil {
		store.Close()
		return err
	}
	k.key = key
	return nil
}

// openStore opens the directory of this account's records, and makes it.
func openStore(config *wire.Persist) (*persist.Store, error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, err
	}
	root, err := rundir.Open(config.Dir)
	if err != nil {
		return nil, err
	}
	store, err := persist.New(root)
	if err != nil {
		root.Close()
	}
	return store, err
}

// readKey reads the file with the account's key. It returns nil if there is to be none.
func readKey(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("persist_key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("persist_key: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("persist_key: %s must be a file of this account that no other can read: chmod 600", path)
	}
	key, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return nil, fmt.Errorf("persist_key: %w", err)
	}
	if len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("persist_key: %s has %d bytes, it must have %d to %d: "+
			"head -c 32 /dev/urandom makes a key", path, len(key), minKey, maxKey)
	}
	return key, nil
}

// finish removes the record, or leaves it to others. It blocks until that is done, but not for long: a
// disk may hang.
func (k *keeper) finish(remove bool) {
	if k == nil {
		return
	}
	end := time.NewTimer(keepEnd)
	defer end.Stop()
	removed := make(chan error, 1)
	go func() { // it ends with the process, if the disk hangs
		<-k.done
		err := fs.ErrNotExist
		if remove && k.record != nil {
			err = k.record.Remove()
		} else {
			k.record.Close()
		}
		removed <- err
	}()
	select {
	case <-end.C:
		k.log.Error("the record of the session may be left: the disk does not answer")
	case err := <-removed:
		if remove && err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.log.Error("the record of the session cannot be removed", "error", err)
		}
	}
}
