//go:build linux || darwin

package access

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// signedWindow is how far the time of a signature may be from the monitor's: clocks that are not
	// set drift by less in months, and a person types a passphrase in less.
	signedWindow = 120 * time.Second

	// keptWindow is for how long at least an accepted signature is kept. By the client's clock, it may
	// be from the end of the window, and is in it for twice its length; a second is for the clocks.
	keptWindow = 2*signedWindow + time.Second

	// maxSigned bounds the signatures of an account that are kept, of 30 bytes each: those of 30
	// logins a second for twice keptWindow.
	maxSigned = 1 << 14

	// signedStep is how far ahead the file of signatures says what may be accepted: it is written
	// once in this time, and the next daemon asks clients for the monitor's time for as long.
	signedStep = signedWindow / 2

	// offeredSize is the size of the time in an Offer, in bytes: the time of day and the uptime, each
	// 8 bytes, and their MAC.
	offeredSize = 16 + sha256.Size
)

// Signatures are those that have let clients in within the last minutes: each counts once. They are
// safe for concurrent use.
//
// A signature has the time of the client's clock. No signature from before floor is accepted, where
// older ones are forgotten: so neither a clock that is set back nor a restart makes one good again. A client
// whose time is not accepted signs the time of an Offer, whose age the monitor knows without a clock
// that can be set. A network process cannot make up such a time, to use the signature later.
type Signatures struct {
	file   string
	log    *slog.Logger
	secret [32]byte // of the MAC

	mu      sync.Mutex
	floor   time.Time
	written time.Time     // in the file: no time of a client after it was accepted
	failed  bool          // the file could not be written, and that was logged
	turned  time.Duration // uptime when recent began
	recent  signed
	old     signed
}

// signed are signatures that were accepted within keptWindow.
type signed struct {
	of     map[uint32]map[signedID]struct{} // by the user id
	latest time.Time                        // of the clocks of their clients
}

// A signedID is that of the connection on which a signature was made: it is good for one login.
type signedID [16]byte

// LoadSignatures returns the signatures of a daemon. The file says until when the last daemon may have accepted some.
func LoadSignatures(file string, now time.Time, log *slog.Logger) *Signatures {
	s := &Signatures{file: file, log: log}
	rand.Read(s.secret[:])
	switch content, err := os.ReadFile(file); {
	case errors.Is(err, fs.ErrNotExist): // the first daemon here
	case err == nil && len(content) == 8:
		s.floor = time.Unix(int64(binary.BigEndian.Uint64(content)), 0)
	default:
		log.Warn("until when the last daemon has accepted signatures is not known", "file", file, "error", err)
		s.floor = now.Add(signedWindow)
	}
	s.written = s.floor
	return s
}

// Offer returns the time for clients whose own one is not accepted.
func (s *Signatures) Offer(now time.Time, uptime time.Duration) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))
	return s.mac(binary.BigEndian.AppendUint64(b, uint64(uptime)))
}

func (s *Signatures) mac(b []byte) []byte {
	h := hmac.New(sha256.New, s.secret[:])
	h.Write(b)
	return h.Sum(b)
}

// The errors of a signature that is not accepted.
var (
	ErrSignedTime  = errors.New("the signature's time is not that of this machine: the client is asked for another one")
	ErrSignedTwice = errors.New("the signature was used before")
)

// Accept records a valid signature. It fails if that is not of now, or was used before. The error is
// a *wire.Error if the account has too many.
func (s *Signatures) Accept(uid uint32, statement *auth.Statement, now time.Time, uptime time.Duration) error {
	clock, offered, err := auth.ParseTime(statement.Time)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(uptime)
	if offered != nil {
		if !s.offeredNow(offered, uptime) {
			return ErrSignedTime
		}
	} else if now.Sub(clock).Abs() > signedWindow || !clock.After(s.floor) || !s.promiseLocked(clock) {
		return ErrSignedTime
	}
	id := signedID(statement.Exporter)
	recent := s.recent.of[uid]
	_, used := recent[id]
	_, usedBefore := s.old.of[uid][id]
	switch {
	case used || usedBefore:
		return ErrSignedTwice
	case len(recent)+len(s.old.of[uid]) >= maxSigned:
		wait := s.turned + keptWindow - uptime
		if len(s.old.of[uid]) == 0 {
			wait += keptWindow
		}
		return &wire.Error{Text: fmt.Sprintf("too many logins: the account has had %d within minutes; try again in %v",
			maxSigned, wait.Round(time.Second))}
	case recent == nil:
		recent = make(map[signedID]struct{})
		s.recent.of[uid] = recent
	}
	recent[id] = struct{}{}
	if clock.After(s.recent.latest) {
		s.recent.latest = clock
	}
	return nil
}

// offeredNow reports whether a time was in an Offer of this monitor a moment ago.
func (s *Signatures) offeredNow(offered []byte, uptime time.Duration) bool {
	if len(offered) != offeredSize {
		return false
	}
	if !hmac.Equal(s.mac(bytes.Clone(offered[:16])), offered) {
		return false
	}
	return uptime-time.Duration(binary.BigEndian.Uint64(offered[8:])) <= signedWindow
}

// forgetLocked forgets old signatures, and accepts no more of their time.
func (s *Signatures) forgetLocked(uptime time.Duration) {
	for s.recent.of == nil || uptime-s.turned >= keptWindow {
		if s.old.latest.After(s.floor) {
			s.floor = s.old.latest
		}
		s.old, s.recent = s.recent, signed{of: make(map[uint32]map[signedID]struct{})}
		if s.turned += keptWindow; len(s.old.of) == 0 {
			s.turned = uptime
		}
	}
}

// promiseLocked makes the file say that a time of a client may be accepted. It reports whether it does.
func (s *Signatures) promiseLocked(clock time.Time) bool {
	if !clock.After(s.written) {
		return true
	}
	until := clock.Add(signedStep)
	err := rundir.ReplaceFile(s.file, binary.BigEndian.AppendUint64(nil, uint64(until.Unix())))
	if err == nil {
		s.written = until
	} else if !s.failed {
		s.log.Warn("each login takes one more round trip: the next daemon could not know which signatures were used",
			"file", s.file, "error", err)
	}
	s.failed = err != nil
	return err == nil
}
