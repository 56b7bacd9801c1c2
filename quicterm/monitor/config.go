//go:build linux || darwin

package monitor

import (
	"context"
	"log/slog"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
)

// Config configures a [Monitor]. The zero value is a daemon with default settings that logs nothing.
type Config struct {
	// Settings are those of qtd's settings file, with defaults as WithDefaults says.
	Settings *configs.Server

	// Log is where the server logs. Nil discards.
	Log *slog.Logger

	// Granted marks a daemon that qtd grant started: it listens on the loopback interface, on the first free port
	// from 60000, and on other addresses once a client came from elsewhere. It serves only its own account (root
	// included), and ends after 10 minutes without a client or a session.
	Granted bool

	// Software is the name and version of the daemon, which a grant tells.
	Software string

	// Holders finds and starts holders. Nil means processes on this machine, which outlive the server.
	Holders processes.Holders

	// Recheck decides whether clients keep their access, in place of the accounts, keys and policies
	// of this machine. It is for servers in memory; nil looks at the machine.
	Recheck func(context.Context) error

	// Manager keeps the sockets while the daemon restarts. Nil is none.
	Manager *systemd.Manager

	// Passed are the sockets that the manager has kept. They are used if the settings name their addresses.
	Passed []systemd.Conn

	// Local says how the holders of this machine are started. The monitor knows the rest: Base, Names, Only and Log.
	Local processes.Config
}
