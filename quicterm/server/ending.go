//go:build linux || darwin

package server

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/migrate/carrier/tcp"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Why the connection of an attached client ends, in words for the log.
const (
	endedBySession = "the session has closed it: it is over, or the client left or was displaced"
	endedByClient  = "the client has closed the connection"
	endedBySilence = "the client was silent for too long"
	endedHere      = "the daemon has closed the connection"
	endedByCheck   = "the client has lost access"
)

// An ending keeps the first reason why a connection ends: what else fails then is only its consequence.
// It is safe for concurrent use. The zero value has no reason.
type ending struct{ first atomic.Pointer[string] }

func (e *ending) because(reason string) { e.first.CompareAndSwap(nil, &reason) }

func (e *ending) reason() string {
	e.because(endedHere)
	return *e.first.Load()
}

// endWords says for people what an error of the connection to a client means.
func endWords(err error) string {
	switch {
	case errors.Is(err, io.EOF), quic.PeerClosed(err), tcp.PeerClosed(err):
		return endedByClient
	case quic.PeerGone(err), tcp.PeerGone(err):
		return endedBySilence
	case quic.ClosedHere(err), tcp.ClosedHere(err):
		return endedHere
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return "the connection has failed: " + wire.Printable(text, wire.MaxSummary)
}
