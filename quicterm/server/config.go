//go:build linux || darwin

package server

import (
	"log/slog"

	"github.com/quicterm/quicterm/configs"
)

// Config configures a [Server]. The zero value is a daemon with default settings that
// logs nothing.
type Config struct {
	// Settings are those of qtd's settings file, with defaults as WithDefaults says.
	Settings *configs.Server

	// Log is where the server logs. Nil discards.
	Log *slog.Logger

	// Granted marks a daemon that qtd grant started: it listens on the loopback
	// interface only, on the first free port, serves only its own account (root
	// included), and ends after 10 minutes without a client or a session.
	Granted bool

	// Holders finds and starts holders. Nil means processes on this machine, which
	// outlive the server.
	Holders Holders

	// HolderArgs are additional arguments of the processes that hold sessions.
	HolderArgs []string
}
