//go:build linux || darwin

package access

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// maxMemo is how many entries of a memo are kept at least, and half of how many at most.
	maxMemo = 1 << 13

	// memoEntrySize is the size of an entry in a file, in bytes: a hash, and a time in Unix nanoseconds.
	memoEntrySize = sha256.Size + 8
)

// A Memo has the latest of many events, with their times. With a file, the next daemon knows them. It is
// safe for concurrent use. The zero value has no file.
type Memo struct {
	file string // of recent; that of old is oldMemo
	log  *slog.Logger

	mu          sync.Mutex
	recent, old map[[sha256.Size]byte]time.Time

	saving sync.Mutex // not mu: what only asks waits for no disk
	failed bool       // the file could not be written, and that was logged
}

// oldMemo is what the name of a memo's file of older events has more.
const oldMemo = ".old"

// Load reads what the last daemon has kept in a file, and makes the memo keep events there.
func (m *Memo) Load(file string, log *slog.Logger) {
	m.file, m.log = file, log
	m.recent, m.old = m.read(file), m.read(file+oldMemo)
}

func (m *Memo) read(file string) map[[sha256.Size]byte]time.Time {
	events := make(map[[sha256.Size]byte]time.Time)
	f, err := os.Open(file)
	if err == nil {
		defer f.Close()
		var content []byte
		content, err = io.ReadAll(io.LimitReader(f, maxMemo*memoEntrySize))
		for ; len(content) >= memoEntrySize; content = content[memoEntrySize:] {
			at := int64(binary.BigEndian.Uint64(content[sha256.Size:]))
			events[[sha256.Size]byte(content)] = time.Unix(0, at)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.warn(err)
	}
	return events
}

func (m *Memo) warn(err error) {
	m.log.Warn("the next daemon will not know which logins there were", "file", m.file, "error", err)
}

// At returns when an event was, or zero if that is not known.
func (m *Memo) At(event [sha256.Size]byte) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.atLocked(event)
}

func (m *Memo) atLocked(event [sha256.Size]byte) time.Time {
	if at, ok := m.recent[event]; ok {
		return at
	}
	return m.old[event]
}

// Add adds an event, unless it is known. It reports whether it is new.
func (m *Memo) Add(event [sha256.Size]byte, at time.Time) bool {
	m.mu.Lock()
	if !m.atLocked(event).IsZero() {
		m.mu.Unlock()
		return false
	}
	full := len(m.recent) >= maxMemo
	if full || m.recent == nil {
		m.old, m.recent = m.recent, make(map[[sha256.Size]byte]time.Time)
	}
	m.recent[event] = at
	m.mu.Unlock()
	if m.file != "" {
		m.save(binary.BigEndian.AppendUint64(event[:], uint64(at.UnixNano())), full)
	}
	return true
}

// save appends an entry to the file, which is a new one if the last one is full.
func (m *Memo) save(entry []byte, full bool) {
	m.saving.Lock()
	defer m.saving.Unlock()
	var err error
	if full {
		err = os.Rename(m.file, m.file+oldMemo)
	}
	f, openErr := os.OpenFile(m.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	err = errors.Join(err, openErr)
	if openErr == nil {
		_, writeErr := f.Write(entry)
		err = errors.Join(err, writeErr, f.Close())
	}
	if err != nil && !m.failed {
		m.warn(err)
	}
	m.failed = err != nil
}
