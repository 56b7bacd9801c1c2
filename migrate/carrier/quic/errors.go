package quic

import (
	"errors"
	"strconv"

	quicgo "github.com/quic-go/quic-go"
)

// refused is the application error code of a connection that a server ends because it has too many clients.
const refused = 1

// Refused reports whether a server refused a connection because it has too many clients: it
// did not accept it, has ended it since, or has no CPU time for the type of host key. The code of an end
// within the handshake is not told (RFC 9000, 10.2.3); the other reason for that is a server that stops.
func Refused(err error) bool {
	var transport *quicgo.TransportError
	var application *quicgo.ApplicationError
	const internalError = 0x100 + 80 // a TLS alert (RFC 9001, 4.8; RFC 8446, 6.2)
	if errors.As(err, &transport) {
		code := transport.ErrorCode
		return code == quicgo.ConnectionRefused ||
			transport.Remote && (code == internalError || code == quicgo.ApplicationErrorErrorCode)
	}
	return errors.As(err, &application) && application.Remote && application.ErrorCode == refused
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

// PeerClosed reports whether a connection ended because the peer closed it.
func PeerClosed(err error) bool {
	var closed *quicgo.ApplicationError
	return errors.As(err, &closed) && closed.Remote
}

// ClosedHere reports whether a connection ended because this end closed it.
func ClosedHere(err error) bool {
	var closed *quicgo.ApplicationError
	return errors.As(err, &closed) && !closed.Remote ||
		errors.Is(err, quicgo.ErrServerClosed) || errors.Is(err, quicgo.ErrTransportClosed)
}

// maxReason bounds the length in bytes of a peer's reason to close, as errors show it.
const maxReason = 256

// quoted returns an error with the peer's reason quoted: it may be any bytes, and people see the error.
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
