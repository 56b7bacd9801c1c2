//go:build linux || darwin

package holder

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// BootMark returns what stays the same for a session as long as this machine
// runs, and says nothing to anybody who does not know the session. It is empty
// where the system does not tell one run from another.
func BootMark(id wire.SessionID) string {
	boot, err := bootID()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte("quicterm boot\x00" + boot + id.String()))
	return hex.EncodeToString(sum[:8])
}
