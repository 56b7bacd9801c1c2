//go:build linux || darwin

package monitor

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// All times of this package follow. What both halves know is in package privsep, and what holders take in package
// holder.
const (
	// AcceptPause is the time between two attempts to accept after one failed, for instance because there are too many
	// open files.
	AcceptPause = 100 * time.Millisecond

	// promptTime bounds what takes milliseconds, unless the machine is starved or a disk sleeps: an answer of the network
	// half or of the daemon's own port, the records of lost sessions, and the lock of an account's daemon, which a child
	// that a killed daemon was starting has until it runs its program.
	promptTime = 2 * time.Second

	// censusTime bounds how long all accounts are asked, whose file systems may not answer, and inspectTime the holders
	// of one. Prometheus waits 10 s by default.
	censusTime  = 2 * promptTime
	inspectTime = 3 * promptTime / 2

	// askTime bounds how long all holders of an account are asked: as long as one may take to answer. If more than
	// MaxAsks of them are silent, each is given less, so that all are asked.
	askTime = socket.AnswerTime

	// operatorTime bounds how long all holders are asked for a request of the operator. Those that answer do so in
	// milliseconds.
	operatorTime = 2 * askTime

	// grantTimeout bounds how long a grant may take: the name service is asked, and the client reads the answer.
	grantTimeout = askTime

	// requestsSlack is how much later than wire.RequestsTime a request may arrive here.
	requestsSlack = 2 * askTime

	// leastAge is how old numbers may be that are told again: each account may ask for them any number of times, and
	// asking uses what the accounts may have asked. lostAge is the same for the list of lost sessions, which takes a
	// process.
	leastAge = time.Second
	lostAge  = 10 * leastAge

	// memoryAge is how old the memory of all accounts may be when a new session is checked against max_buffer_total.
	// Looking at all processes takes milliseconds; a session fills its buffer in seconds.
	memoryAge = 5 * leastAge

	// listenPause is the time between two attempts to listen at the address of the setting metrics or web.
	listenPause = 5 * time.Second

	// certificatePause is how often it is looked whether the page's certificate has changed: programs renew it days before
	// it ends.
	certificatePause = time.Minute

	// followPause is the time before a holder that could not be asked is asked again.
	followPause = time.Minute

	// overdueTime is how much later than it should the network half may ask whether a login still counts.
	overdueTime = 2 * privsep.AddressInterval

	// MaxUnused is how long a granted daemon runs without a client, a session or a grant.
	MaxUnused = 10 * time.Minute

	// pipeTTL bounds how long a command without a terminal waits for its client: longer than networks fail, and short
	// enough that the commands of clients which are gone do not pile up. exitedTTL bounds how long a session keeps its
	// exit status for a client: a laptop that is closed overnight.
	pipeTTL   = time.Hour
	exitedTTL = 24 * pipeTTL
)
