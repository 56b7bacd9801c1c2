//go:build linux || darwin

package holder

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// BootMark returns a text that is the same for a session until this machine is started
// anew, and means nothing without the session's id. It is empty if the system has no boot
// id.
func BootMark(id wire.SessionID) string {
	boot, err := bootID()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte("quicterm boot\x00" + boot + id.String()))
	return hex.EncodeToString(sum[:8])
}
