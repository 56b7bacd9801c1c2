//go:build linux || darwin

package server

import (
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
)

// All times of this package follow. Those of a login that the monitor knows as well are in package privsep.
const (
	// firstMessageTimeout bounds how long a client may be silent. It sends its first message with the end of its
	// handshake; packets may be lost.
	firstMessageTimeout = quic.StrangerTimeout

	// webTime bounds how long a connection to the page may take to ask for something, and be idle. webPageTime bounds how
	// long it may take the answer: 2 MB on a slow path. Connections that take it are the first to lose their place.
	webTime, webPageTime = 5 * time.Second, time.Minute

	// closeTimeout bounds how long a client may take to read the last message and to close the connection.
	closeTimeout = 3 * time.Second

	// denyInterval is the unit of the time that a denied login takes, so that it does not tell whether the account
	// exists, or has keys. Looking that up takes less.
	denyInterval = 200 * time.Millisecond

	// protectedTime is how long strangers of a site are protected: some round trips.
	protectedTime = time.Second

	// growTime is in how much time a client uses up the small window of a connection by TCP, if a larger one makes it
	// faster: in a few round trips.
	growTime = protectedTime

	// hangupInterval is the time between two looks whether a client by TCP has gone. A read learns it at once, but there
	// is none while a holder takes nothing.
	hangupInterval = 5 * time.Second

	// lookInterval is the least time between two looks at the processor time of this process.
	lookInterval = 100 * time.Millisecond

	// sampleInterval is how often the address, the round trips and the losses of connections are looked at.
	sampleInterval = 15 * time.Second

	// bulkTime is how long a connection may bring less than bulkBytes before another one of its account has its window.
	bulkTime = time.Minute
)
