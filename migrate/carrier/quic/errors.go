package quic

import (
	"errors"
	"strconv"

	quicgo "github.com/quic-go/quic-go"
)

// Refused reports whether a server refused a connection because it has too many clients.
func Refused(err error) bool {
	var e *quicgo.TransportError
	return errors.As(err, &e) && e.ErrorCode == quicgo.ConnectionRefused
}

// TicketRejected reports whether a connection failed because of the TLS ticket of its dial. A
// dial without the ticket may succeed.
func TicketRejected(err error) bool {
	var e *quicgo.TransportError
	return errors.Is(err, quicgo.Err0RTTRejected) || errors.As(err, &e) && e.Remote && e.ErrorCode.IsCryptoError()
}

// PeerGone reports whether a connection ended because the peer closed it, became silent, or
// never completed the handshake.
func PeerGone(err error) bool {
	var closed *quicgo.ApplicationError
	var idle *quicgo.IdleTimeoutError
	var handshake *quicgo.HandshakeTimeoutError
	var transport *quicgo.TransportError
	return errors.As(err, &closed) || errors.As(err, &idle) || errors.As(err, &handshake) ||
		errors.As(err, &transport) && transport.Remote
}

// maxReason bounds the length in bytes of a peer's reason to close, as errors show it.
const maxReason = 256

// quoted returns an error with the peer's reason quoted: it may be any bytes, and people see
// the error.
func quoted(err error) error {
	quote := func(s string) string { return strconv.Quote(s[:min(len(s), maxReason)]) }
	switch e := err.(type) {
	case *quicgo.ApplicationError:
		if e.Remote && e.ErrorMessage != "" {
			e := *e
			e.ErrorMessage = quote(e.ErrorMessage)
			return &e
		}
	case *quicgo.TransportError:
		if e.Remote && e.ErrorMessage != "" {
			e := *e
			e.ErrorMessage = quote(e.ErrorMessage)
			return &e
		}
	}
	return err
}
