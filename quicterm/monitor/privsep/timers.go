//go:build linux || darwin

package privsep

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// What both halves know of the time of a login.
const (
	// RightTime is how long that which let a client in, and in which a check found no reason to refuse, is used for
	// other resumes: a client without a path makes many. For List, Kill and Revoke it is not looked at again for as
	// long either. A refusal is never used again: the file of the keys may have been empty while it was written, and the
	// client ends when it is told.
	RightTime = wire.RequestsTime

	// AddressInterval is how often a connection is looked at: whether its client has another address, for which a key
	// may not be good. It costs no check if not.
	AddressInterval = time.Minute

	// RetryInterval is when a check that told nothing is made again.
	RetryInterval = 10 * AddressInterval

	// RecheckInterval is how often a login is checked again while its connection lasts.
	RecheckInterval = 24 * time.Hour
)

// What the halves give each other, on Linux.
const (
	// replyTime is how long a half may take to answer, or to read a frame, before it counts as dead. The monitor includes
	// the wait for the frames before: a process that reads slowly does not keep it busy.
	replyTime = 10 * time.Second

	// watchInterval is how often the network process is asked whether it answers.
	watchInterval = 3 * replyTime

	// shortLife is how long a network process must have lived to be started again at once. If it has not, the next one
	// waits: leastPause, twice as long each time, up to mostPause.
	shortLife  = replyTime
	mostPause  = replyTime / 2
	leastPause = mostPause / 100

	// endTime is how long the network half may take to tell clients that it ends.
	endTime = replyTime / 2

	// lastWords bounds how long its log is read after its end. Then the pipe is empty and closed, unless the process has
	// passed it on.
	lastWords = time.Second
)
