//go:build linux || darwin

package access

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

const (
	// verdictsTime is how long what an account allows the keys of an attempt is used: the answer to
	// an Offer takes longer only if a person is asked for something, and then a key may have been
	// removed since.
	verdictsTime = 5 * time.Second

	// maxAttempt bounds what is kept of an attempt, in bytes: 64 keys with short commands. What takes
	// more, such as long commands, is looked up again.
	maxAttempt = 8 << 10

	// maxOfAccount bounds what is kept of an account, and maxKept what is kept in all, in bytes:
	// strangers may ask. 128 KiB are hundreds of clients with a key or two that log in within
	// verdictsTime.
	maxOfAccount, maxKept = 128 << 10, 4 << 20

	// attemptSize and verdictSize are what an attempt and a verdict take without texts, in bytes.
	attemptSize, verdictSize = 200, 80
)

// verdicts have what accounts allowed the keys of the latest attempts. They are safe for concurrent use.
type verdicts struct {
	mu    sync.Mutex
	kept  map[[sha256.Size]byte]attempt // by the hash of the Offer
	order [][sha256.Size]byte           // the oldest first
	bytes int                           // of all
	of    map[uint32]int                // bytes of an account, by its user id
}

type attempt struct {
	uid      uint32
	verdicts []auth.Verdict // in the order of the keys, without what only the log needs
	bytes    int
	at       time.Time
}

// get returns verdicts that are not too old. The caller does not change them.
func (v *verdicts) get(key [sha256.Size]byte) []auth.Verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	one, ok := v.kept[key]
	if !ok || time.Since(one.at) >= verdictsTime {
		return nil
	}
	return one.verdicts
}

// put keeps verdicts for verdictsTime, unless there are too many.
func (v *verdicts) put(key [sha256.Size]byte, uid uint32, some []auth.Verdict) {
	one := attempt{uid: uid, bytes: attemptSize, at: time.Now()}
	for _, verdict := range some {
		one.bytes += verdictSize
		kept := auth.Verdict{Allowed: verdict.Allowed}
		if kept.Allowed == nil {
			text := verdict.Refused.Error()
			kept.Refused = errors.New(text)
			one.bytes += len(text)
		} else {
			one.bytes += kept.Allowed.Size()
		}
		if one.bytes > maxAttempt {
			return
		}
		one.verdicts = append(one.verdicts, kept)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.expireLocked()
	if _, known := v.kept[key]; known || v.bytes+one.bytes > maxKept || v.of[uid]+one.bytes > maxOfAccount {
		return
	}
	if v.kept == nil {
		v.kept, v.of = make(map[[sha256.Size]byte]attempt), make(map[uint32]int)
	}
	v.kept[key], v.order = one, append(v.order, key)
	v.bytes += one.bytes
	v.of[uid] += one.bytes
}

func (v *verdicts) expireLocked() {
	expired := 0
	for _, key := range v.order {
		one := v.kept[key]
		if time.Since(one.at) < verdictsTime {
			break
		}
		expired++
		delete(v.kept, key)
		v.bytes -= one.bytes
		if v.of[one.uid] -= one.bytes; v.of[one.uid] == 0 {
			delete(v.of, one.uid)
		}
	}
	v.order = slices.Delete(v.order, 0, expired)
}

// hashOffer returns the hash of all that verdicts depend on.
func hashOffer(o *privsep.Offer) (sum [sha256.Size]byte) {
	h := sha256.New()
	add := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
		h.Write(b)
	}
	add(binary.BigEndian.AppendUint64(nil, o.Attempt))
	add(binary.BigEndian.AppendUint64(nil, uint64(o.Earlier)))
	add([]byte(o.User))
	add(fmt.Append(nil, o.Path.From(), o.Path.At()))
	for _, key := range o.Keys {
		add(key)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
