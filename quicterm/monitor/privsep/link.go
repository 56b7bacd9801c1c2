//go:build linux || darwin

package privsep

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"

	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// LinkCalls are what the process that connects this host to a hub asks of the monitor. It parses what the hub sends, and
// is taken for hostile, as the network process is.
type LinkCalls struct {
	Setup Call[None, LinkSetup]
	Prove Call[HubLogin, HubProof] // once in the life of the process
	Ready Call[None, None]         // the hub has accepted the login
	Ended Call[LinkEnd, None]      // why the process ends
	Take  Call[Caller, Taken]      // a client that the hub relays
}

// A LinkSetup is what the process has for its life.
type LinkSetup struct {
	URL     string   `cbor:"1,keyasint"` // of the hub
	Key     []byte   `cbor:"2,keyasint"` // the host key that proves the host, RFC 4253, 6.6
	Name    string   `cbor:"3,keyasint"` // of the host
	Keys    []string `cbor:"4,keyasint"` // fingerprints of all host keys
	Version string   `cbor:"5,keyasint"`
}

// A HubLogin is what the host is to sign besides the name of its hub, which the monitor knows: see hub.Statement.
type HubLogin struct {
	Time int64  `cbor:"1,keyasint"` // in seconds, of this machine's clock
	NKey string `cbor:"2,keyasint"` // public
}

// A HubProof is a signature by the host key, in the form of SSH.
type HubProof struct {
	Format string `cbor:"1,keyasint"`
	Blob   []byte `cbor:"2,keyasint"`
}

// A LinkEnd says why a connection to the hub has ended, or never began.
type LinkEnd struct {
	Text string `cbor:"1,keyasint"`
}

func (e *LinkEnd) makePrintable() { e.Text = wire.Printable(e.Text, maxShownText) }

// A Taken is the near end of a connection whose far end the network half serves. The caller closes it.
type Taken struct {
	Conn net.Conn `cbor:"-"`
	fd   int      // in the monitor
}

func (t *Taken) takeFiles(files []*os.File) error {
	defer closeFiles(files)
	if len(files) != 1 {
		return errors.New("an answer without a connection")
	}
	c, err := net.FileConn(files[0])
	t.Conn = c
	return err
}

// A LinkHost is what the process of the hub gets from its monitor.
type LinkHost struct {
	Setup  LinkSetup
	Prove  func(*HubLogin) (*HubProof, error)
	Relay  func(ctx context.Context, c net.Conn, caller Caller) // owns the connection, and blocks as long as it is handed over
	Log    *slog.Logger
	Panics *panics.Container // contains those of calls
}
