//go:build linux || darwin

package persist

import (
	"crypto/sha256"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Boot identifies one run of this machine, from its start to the next. It is empty if it is not known.
type Boot string

// CurrentBoot returns the present run of this machine. A process calls it once, at its
// start: later the system may not answer, for example for lack of descriptors.
func CurrentBoot() Boot {
	id, err := bootID()
	if err != nil {
		return ""
	}
	return Boot(id)
}

// Mark returns the mark of this run for a session, or zeros if the run is not known.
func (b Boot) Mark(id wire.SessionID) (mark wire.BootMark) {
	if b != "" {
		sum := sha256.Sum256([]byte("quicterm boot\x00" + string(b) + id.String()))
		copy(mark[:], sum[:])
	}
	return mark
}
