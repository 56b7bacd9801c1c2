package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// SocketVariable is the environment variable by which a program finds the socket of the holder of its session.
const SocketVariable = "QUICTERM_SOCKET"

// OfferFile asks a holder to offer a file to the client at the keyboard. Done answers it when that client was told.
type OfferFile struct {
	ID   uint64 `cbor:"1,keyasint"` // random: the same one again is the same offer
	Size uint64 `cbor:"2,keyasint"` // in bytes
	Name string `cbor:"3,keyasint" text:"summary"`
}

// maxOfferName bounds the name in a notice, in bytes: what is before it has at most 38 of the 256 of a notice.
const maxOfferName = 200

// String returns the text of NoticeFile.
func (o OfferFile) String() string {
	return fmt.Sprintf("%016x %d %s", o.ID, o.Size, Printable(o.Name, maxOfferName))
}

// ParseOfferFile is the inverse of String. The name is [Printable].
func ParseOfferFile(text string) (o OfferFile, err error) {
	fields := strings.SplitN(text, " ", 3)
	if len(fields) < 3 || len(fields[0]) != 16 {
		return o, fmt.Errorf("no offer of a file: %q", text)
	}
	if o.ID, err = strconv.ParseUint(fields[0], 16, 64); err == nil {
		o.Size, err = strconv.ParseUint(fields[1], 10, 63)
	}
	o.Name = Printable(fields[2], maxOfferName)
	return o, err
}
