//go:build linux || darwin

package keys

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
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
)

const (
	// ticketKeyDay is how long a key encrypts new tickets.
	ticketKeyDay = 24 * time.Hour

	// maxTicketKeys is how many keys decrypt tickets: enough for a client that was
	// away for two days, whenever in a key's day it got its ticket.
	maxTicketKeys = 3

	// RenewInterval is the time between two reads of the key file: another daemon may have made a key.
	RenewInterval = ticketKeyDay / 24
)

// A ticketKey encrypts TLS session tickets (RFC 8446, 4.6.1), by which clients resume in early data.
type ticketKey struct {
	made time.Time
	key  [32]byte
}

// ticketKeySize is the size of a key in the file, in bytes: when it was made, in Unix seconds, and the key.
const ticketKeySize = 8 + 32

// Tickets are the ticket keys that all daemons of one state directory share, later ones too.
type Tickets struct {
	file string
	log  *slog.Logger

	mu     sync.Mutex
	keys   []ticketKey // newest first
	failed bool        // the last renewFileLocked failed, and that was logged
}

// NewTickets returns the ticket keys of a file, renewed.
func NewTickets(file string, log *slog.Logger) *Tickets {
	t := &Tickets{file: file, log: log}
	t.Renew(time.Now())
	return t
}

// Renew makes a key if the newest is older than a day. If the file cannot be used, the keys live in memory
// until the daemon ends.
func (t *Tickets) Renew(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.renewFileLocked(now)
	if err != nil {
		t.keys = rotate(t.keys, now)
		if !t.failed {
			t.log.Warn("TLS ticket keys are in memory only: after a restart of the daemon, resuming takes a round trip more",
				"error", err)
		}
	}
	t.failed = err != nil
}

// Current returns the keys as they were renewed last, the one for new tickets first.
func (t *Tickets) Current() (keys [][32]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.keys {
		keys = append(keys, k.key)
	}
	return keys
}

// renewFileLocked merges the keys with those in the file, and renews both. It locks the
// directory, so that only one of several daemons makes a new key.
func (t *Tickets) renewFileLocked(now time.Time) error {
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
		t.log.Warn("file of TLS ticket keys is damaged and replaced", "file", t.file, "error", err)
	}
	keys := rotate(append(kept, t.keys...), now)
	if next := formatTicketKeys(keys); string(next) != string(content) {
		if err := rundir.ReplaceFile(t.file, next); err != nil {
			return err
		}
	}
	t.keys = keys
	return nil
}

// rotate returns the keys that are not too old, newest first. If the newest is older than a day, it makes one.
func rotate(keys []ticketKey, now time.Time) []ticketKey {
	keys = slices.Clone(keys)
	keys = slices.DeleteFunc(keys, func(k ticketKey) bool {
		age := now.Sub(k.made)
		return age >= maxTicketKeys*ticketKeyDay || age < -ticketKeyDay // made while the clock was wrong
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
