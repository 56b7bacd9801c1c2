//go:build linux || darwin

package processes

import (
	"context"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Side is who has holders of an account asked. Each has turns of its own, so that no account delays what is done
// against its will.
type Side int

const (
	Client   Side = iota // of the account, or one that resumes
	Revoker              // a client that takes access from others
	Operator             // or the daemon itself
)

type sideKey struct{}

// OnSide returns a context for what a side asks; without one, a Client does.
func OnSide(ctx context.Context, s Side) context.Context { return context.WithValue(ctx, sideKey{}, s) }

// An Asker is a side that asks holders of an account.
type Asker struct {
	UID  uint32
	Side Side
}

// AskerOf returns who asks holders of an account with a context.
func AskerOf(ctx context.Context, uid uint32) Asker {
	side, _ := ctx.Value(sideKey{}).(Side)
	return Asker{uid, side}
}

// Holders finds, asks and starts the holders of sessions. Any goroutine may call any method at any time.
type Holders interface {
	// Memory returns how much memory the output in the holders of each account takes,
	// as the system says. Accounts of which it is not known are left out.
	Memory() map[uint32]uint64

	// Sessions returns the ids of an account's sessions, in any order. The holder of one may not answer. Sessions
	// blocks while the account's file system does, so callers bound how many ask for an account at once.
	Sessions(uid uint32) []wire.SessionID

	// Ask sends a request to the holder of an account's session, with open before it, and returns the answer. The
	// error is [fs.ErrNotExist] only if there is certainly no such holder: a client that is told so gives its session
	// up. Ask blocks until the holder answers or ctx ends, but only for seconds.
	Ask(ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, request wire.Message) (wire.Message, error)

	// Carry is like Ask for a request that makes the connection to the holder a carrier, with datagrams if that is
	// asked for. The caller closes the carrier, also if the answer is a refusal. On an error the carrier is nil.
	Carry(
		ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, request wire.Message, datagrams bool,
	) (wire.Message, carrier.Carrier, error)

	// Accounts returns the accounts that may have sessions, in any order.
	Accounts() []uint32

	// Await returns the Report of an account's session when that is over. It blocks until then or until ctx ends.
	// The error is [fs.ErrNotExist] as that of Ask, and [io.EOF] if the holder has ended without an answer.
	Await(ctx context.Context, uid uint32, id wire.SessionID) (wire.Message, error)

	// Start starts the holder of a new session of an account. It returns when the
	// program runs and the holder can be asked, or when ctx ends.
	Start(ctx context.Context, a *account.Account, launch *wire.Launch) error

	// Records has a process of an account list or remove records of lost sessions, as launch.Persist says, or do
	// launch.Keys, and returns its answer. It blocks until then or until ctx ends, but only for seconds.
	Records(ctx context.Context, a *account.Account, launch *wire.Launch) (wire.Message, error)
}
