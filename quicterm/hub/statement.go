package hub

import (
	"crypto/sha512"
	"encoding/binary"
	"time"
)

// Namespace separates the signatures of logins at hubs from all others of the same key (PROTOCOL.sshsig).
const Namespace = "hub@quicterm"

// Statement returns the text that a key signs to log in to a hub: the signed data of PROTOCOL.sshsig over which hub it is,
// by the host in its URL (see Address.Host), the time in seconds, and the public nkey of the connection. So a hub cannot
// use it at another hub, and nobody without the nkey can use it at all.
func Statement(host string, at time.Time, nkey string) []byte {
	message := []byte("v1")
	message = appendString(message, host)
	message = binary.BigEndian.AppendUint64(message, uint64(at.Unix()))
	message = appendString(message, nkey)
	sum := sha512.Sum512(message)

	text := []byte("SSHSIG")
	text = appendString(text, Namespace)
	text = appendString(text, "") // reserved
	text = appendString(text, "sha512")
	return appendString(text, string(sum[:]))
}

func appendString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}
