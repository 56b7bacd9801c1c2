//go:build linux || darwin

package quicterm

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	// ticketKeyDay is how long new TLS session tickets are made with a key.
	ticketKeyDay = 24 * time.Hour

	// maxTicketKeys is how many keys are good. A client that has been away for
	// two days has a ticket of one of them, whenever that was made in its day.
	maxTicketKeys = 3

	// renewEvery is how often the keys are looked at: another daemon may have
	// made one.
	renewEvery = time.Hour
)

// A ticketKey encrypts TLS session tickets (RFC 8446, 4.6.1), with which clients
// come back in early data.
type ticketKey struct {
	made time.Time
	key  [32]byte
}

// ticketKeySize is what a key takes in a file: when it was made, in Unix seconds,
// and the key.
const ticketKeySize = 8 + 32

// ticketKeys are the keys that all daemons of one state directory use, also those
// to come. It is not safe for concurrent use.
type ticketKeys struct {
	file   string
	log    *slog.Logger
	keys   []ticketKey // newest first
	failed bool        // they are in memory only, and that was logged
}

// renew returns the keys of the moment, the one for new tickets first. It makes
// them where there are none, or none of this day. Keys that cannot be kept in the
// file are as good, until the daemon ends.
func (t *ticketKeys) renew(now time.Time) [][32]byte {
	err := t.renewFile(now)
	if err != nil {
		t.keys = rotate(t.keys, now)
		if !t.failed {
			t.log.Warn("keys of TLS tickets are in memory only: after a restart clients take longer to come back", "error", err)
		}
	}
	t.failed = err != nil
	var keys [][32]byte
	for _, k := range t.keys {
		keys = append(keys, k.key)
	}
	return keys
}

// renewFile renews the keys in the file and takes them from there. It has the
// directory locked, so that of several daemons one makes a new key.
func (t *ticketKeys) renewFile(now time.Time) error {
	dir, err := os.Open(filepath.Dir(t.file))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", dir.Name(), err)
	}
	content, err := os.ReadFile(t.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kept, err := parseTicketKeys(content)
	if err != nil {
		t.log.Warn("keys of TLS tickets are made anew", "file", t.file, "error", err)
	}
	keys := rotate(append(kept, t.keys...), now)
	if next := formatTicketKeys(keys); string(next) != string(content) {
		if err := replaceFile(t.file, next); err != nil {
			return err
		}
	}
	t.keys = keys
	return nil
}

// rotate returns the keys that are good, newest first. If none is of the last
// day, it makes one.
func rotate(keys []ticketKey, now time.Time) []ticketKey {
	keys = slices.Clone(keys)
	keys = slices.DeleteFunc(keys, func(k ticketKey) bool {
		age := now.Sub(k.made)
		return age >= maxTicketKeys*ticketKeyDay || age < -ticketKeyDay // the clock was wrong
	})
	slices.SortStableFunc(keys, func(a, b ticketKey) int { return b.made.Compare(a.made) })
	keys = slices.CompactFunc(keys, func(a, b ticketKey) bool { return a.key == b.key })
	if len(keys) == 0 || now.Sub(keys[0].made) >= ticketKeyDay {
		k := ticketKey{made: time.Unix(now.Unix(), 0)}
		rand.Read(k.key[:])
		keys = slices.Insert(keys, 0, k)
	}
	return keys[:min(len(keys), maxTicketKeys)]
}

func parseTicketKeys(content []byte) ([]ticketKey, error) {
	if len(content)%ticketKeySize != 0 || len(content) > maxTicketKeys*ticketKeySize {
		return nil, fmt.Errorf("file has %d bytes, not up to %d times %d", len(content), maxTicketKeys, ticketKeySize)
	}
	var keys []ticketKey
	for b := range slices.Chunk(content, ticketKeySize) {
		made := time.Unix(int64(binary.BigEndian.Uint64(b)), 0)
		keys = append(keys, ticketKey{made: made, key: [32]byte(b[8:])})
	}
	return keys, nil
}

func formatTicketKeys(keys []ticketKey) []byte {
	var b []byte
	for _, k := range keys {
		b = binary.BigEndian.AppendUint64(b, uint64(k.made.Unix()))
		b = append(b, k.key[:]...)
	}
	return b
}

// replaceFile puts a file that only its owner may read in the place of one that
// there may be. Others see either whole.
func replaceFile(file string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
