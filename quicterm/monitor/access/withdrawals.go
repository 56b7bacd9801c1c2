//go:build linux || darwin

package access

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
)

// maxWithdrawals bounds how many withdrawals are kept, and maxAccountWithdrawals those of an
// account, whose holders can make admissions up. The oldest are forgotten.
const maxWithdrawals, maxAccountWithdrawals = 1024, 16

// withdrawals are the rights that the last check has refused. A file keeps them for
// the next daemon: otherwise each restart would give such clients access until their first check. Without a
// file they are in memory only. They are safe for concurrent use.
type withdrawals struct {
	file string
	log  *slog.Logger

	mu   sync.Mutex
	kept []withdrawal // oldest first

	saving sync.Mutex // not mu: what only asks waits for no disk
	failed bool       // the file could not be written, and that was logged
}

// A withdrawal refuses one admission of an account, or all of them. It was found for one address.
type withdrawal struct {
	uid       uint32
	admission [sha256.Size]byte // hash of it; zeros for all
	place     [sha256.Size]byte // hash of the addresses of the client and of the daemon
}

// withdrawalSize is the size of a withdrawal in the file, in bytes: the fields in their order.
const withdrawalSize = 4 + 2*sha256.Size

func withdrawalOf(r Right) withdrawal {
	return withdrawal{
		uid:       r.UID,
		admission: sha256.Sum256(fmt.Appendf(nil, "%q %q %q %t", r.Account, r.Key, r.Scope, r.NoPTY)),
		place:     sha256.Sum256(fmt.Appendf(nil, "%v %v", r.From, r.At)),
	}
}

// covers reports whether a withdrawal refuses the admission of another one, alone or with its whole account.
func (w withdrawal) covers(other withdrawal) bool {
	return w.uid == other.uid && (w.admission == other.admission || w.admission == [sha256.Size]byte{})
}

// loadWithdrawals returns what the last daemon has kept in a file.
func loadWithdrawals(file string, log *slog.Logger) *withdrawals {
	w := &withdrawals{file: file, log: log}
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.warn(err)
	}
	for b := range slices.Chunk(content[:len(content)-len(content)%withdrawalSize], withdrawalSize) {
		one := withdrawal{uid: binary.BigEndian.Uint32(b)}
		copy(one.place[:], b[4+copy(one.admission[:], b[4:]):])
		w.kept = append(w.kept, one)
	}
	return w
}

func (w *withdrawals) warn(err error) {
	w.log.Warn("after a restart of the daemon, clients that have lost access are let in until they are checked",
		"file", w.file, "error", err)
}

// has reports whether the admission of a right, or its whole account, is refused for any address.
func (w *withdrawals) has(r Right) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := withdrawalOf(r)
	return slices.ContainsFunc(w.kept, func(one withdrawal) bool { return one.covers(asked) })
}

// add records that a right is refused or, with account, all rights of its account from its address.
func (w *withdrawals) add(r Right, account bool) {
	added := withdrawalOf(r)
	if account {
		added.admission = [sha256.Size]byte{}
	}
	if w.keep(added) {
		w.save()
	}
}

// keep adds a withdrawal, and reports whether it is new.
func (w *withdrawals) keep(added withdrawal) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.kept, added) {
		return false
	}
	w.kept = append(w.kept, added)
	ofAccount := 0
	for _, one := range w.kept {
		if one.uid == added.uid {
			ofAccount++
		}
	}
	if ofAccount > maxAccountWithdrawals {
		i := slices.IndexFunc(w.kept, func(one withdrawal) bool { return one.uid == added.uid })
		w.kept = slices.Delete(w.kept, i, i+1)
	}
	w.kept = w.kept[max(len(w.kept)-maxWithdrawals, 0):]
	return true
}

// remove records that a right lets its client in: it removes the withdrawals for its address.
func (w *withdrawals) remove(r Right) {
	removed := withdrawalOf(r)
	w.mu.Lock()
	before := len(w.kept)
	w.kept = slices.DeleteFunc(w.kept, func(one withdrawal) bool {
		return one.covers(removed) && one.place == removed.place
	})
	changed := len(w.kept) < before
	w.mu.Unlock()
	if changed {
		w.save()
	}
}

func (w *withdrawals) save() {
	if w.file == "" {
		return
	}
	w.saving.Lock()
	defer w.saving.Unlock()
	err := rundir.ReplaceFile(w.file, w.content())
	if err != nil && !w.failed {
		w.warn(err)
	}
	w.failed = err != nil
}

func (w *withdrawals) content() (content []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.kept {
		content = binary.BigEndian.AppendUint32(content, one.uid)
		content = append(append(content, one.admission[:]...), one.place[:]...)
	}
	return content
}
