//go:build linux || darwin

package privsep

import (
	"context"
	"net"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// Calls are what the network half asks of the monitor, at any time and from any goroutine. A new call is a line here,
// and a method in the monitor's table. The number of a call between two processes is the place of its line.
type Calls struct {
	Setup    Call[None, Setup]
	Ready    Call[None, None]       // the network process has started; only it calls this
	Sign     Call[Sign, []byte]     `call:"quick"`
	Leave    Call[LoginID, None]    `call:"quick"` // the connection of the client has ended
	Offer    Call[Offer, Verdicts]  // also of an account that does not exist, which accepts no key
	Prove    Call[Proof, Login]     // by a key of an Offer
	Redeem   Call[Token, Login]     // by the token of a grant
	Check    Call[By, None]         // the error is a *Withdrawn if the login does not let its client in any more
	List     Call[By, wire.Listing] // the sessions that a client may see
	Describe Call[By, wire.Description]
	Pass     Call[Pass, Answer]
	Revoke   Call[Revoke, wire.Revoked]
	Enroll   Call[Enroll, wire.Enrolled]
	Keys     Call[By, wire.Keys] // the enrolled keys of the account
	Attach   Call[Attach, Attached]
	Resume   Call[Resume, Resumed]
	Measure  Call[None, Numbers]
}

// A Call asks for something. It blocks until there is an answer or ctx ends. On an error the answer is nil.
type Call[R, A any] func(context.Context, *R) (*A, error)

// None is a request or an answer that says nothing.
type None struct{}

// Done is the call of a function whose answer says nothing.
func Done[R any](f func(context.Context, *R) error) Call[R, None] {
	return func(ctx context.Context, r *R) (*None, error) { return new(None), f(ctx, r) }
}

// Told is the call of a function that needs no request.
func Told[A any](f func(context.Context) (*A, error)) Call[None, A] {
	return func(ctx context.Context, _ *None) (*A, error) { return f(ctx) }
}

// A Network is the half of a daemon that talks to clients, in this process or in another one.
type Network interface {
	// Run does what the other half does all the time, until ctx ends.
	Run(ctx context.Context) error

	// Update tells the settings of the moment. It is called before all but Run, and when they have changed.
	Update(State)

	// Serve serves clients on a socket, until ctx ends or the socket fails. It closes the socket.
	Serve(ctx context.Context, s Listener) error

	// ServeLocal serves a client whose carrier is a connection of this machine, until that or ctx
	// ends. It closes the connection.
	ServeLocal(ctx context.Context, c net.Conn, client *Local)

	// Clients returns the clients that are connected.
	Clients(ctx context.Context) (*Clients, error)

	// Metrics returns the counts of both halves in the format of Prometheus.
	Metrics(ctx context.Context) ([]byte, error)
}
