package client

import (
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// All times of this package follow. When a session's paths are pinged and dialed, package migrate decides.
const (
	// busyPause is the time before a login that a busy server refused is tried again, twice as long each
	// time up to patience, and half of it at random: so hundreds that came at once do not come
	// back at once. They are tried again until busyTime is over, in which a server does thousands of logins.
	busyPause = 100 * time.Millisecond
	busyTime  = 30 * time.Second

	// nextAddress is how long an address has to answer before the next one is dialed as well (RFC 8305, 5).
	nextAddress = 250 * time.Millisecond

	// nextDial is how long an address that was dialed by QUIC has before it is dialed once more, beside the dials that
	// run: QUIC waits twice as long for each further packet of a handshake, 10 s for some of 30 % loss. It also bounds the
	// wait for a system to say that no program has a port, which takes a round trip.
	nextDial = 2 * nextAddress

	// loginPing is the time between pings while the server owes the answer to a login. The server's transport
	// acknowledges each, also while its daemon is busy. After the same time without an answer by QUIC or TCP the tunnel
	// is used as well: it logs in, for which the user may be asked.
	loginPing = time.Second

	// webDelay is how long a server has to answer by TCP before it is dialed by HTTPS as well: TCP has sent its first
	// packet twice by then.
	webDelay = 3 * loginPing / 2

	// patience is how long the user is told nothing, more than a server takes that answers. It is also the least time
	// between two requests to resolve the server's name, and what HTTPS has from when TCP has failed.
	patience = 2 * loginPing

	// confirmedAfter is how long a server must say that a session is gone before that counts. One such answer may be
	// wrong, and what a pipe has not delivered is lost with it.
	confirmedAfter = 3 * time.Second

	// StatusTimeout is how long Status waits for the loop that keeps the session connected, which answers at once if it
	// runs.
	StatusTimeout = 500 * time.Millisecond

	// KeptTime is how long a connection takes further requests: a request may be a while on its way.
	KeptTime = 2 * wire.RequestsTime / 3

	// goodbyeTimeout is how long a client that leaves waits for the server to learn that, and endTimeout how long one
	// waits that knows how the program has ended, while the link seems alive: if the server does not learn it, it keeps
	// the session as exited for a day. A loaded server takes seconds.
	goodbyeTimeout = loginPing
	endTimeout     = connectTime

	// suspectTime is how much of goodbyeTimeout a client that leaves waits for what was typed to be given to the program
	// over a link that seems dead: about the time after which it does.
	suspectTime = goodbyeTimeout / 4

	// sentPoll is how often a client that leaves looks whether the system has got what it has to send.
	sentPoll = 200 * time.Microsecond

	// minHintInterval is the shortest time between two hints that are asked for: a person sees no difference.
	minHintInterval = 50 * time.Millisecond

	// trafficSilence is how long after the last report of traffic more of it wakes the loop. It is well below the time
	// after which [migrate.Manager] pings less often.
	trafficSilence = migrate.ActiveFor / 6

	// maxLate is how late a timer may be before the reason is that this process did not run: more than a timer's own
	// error, and less than every timeout of package migrate.
	maxLate = 20 * time.Millisecond

	// connectTime is how long the server has to answer, over all addresses. A user waits for the error: a round trip to
	// a satellite and back takes 0.6 s, and a handshake two or three of these. Resolving a name may take twice as long.
	connectTime = 5 * time.Second

	// goneAfter is how long a server may deny that it has the session, without saying that it is gone, before the session
	// counts as gone: a holder whose socket was removed makes it again within a minute.
	goneAfter = 130 * time.Second
)
