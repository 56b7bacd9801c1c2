package bootstrap

import "time"

// All times of this package follow.
const (
	// silentTime is how long a login that may ask may neither say nor ask anything: more than a server that answers
	// takes, and enough to touch a key that an agent has.
	silentTime = time.Minute

	// askTime and batchTime bound how long a login may take, if the user is asked and if not. sshd gives each 2 minutes,
	// and there may be a jump host.
	askTime   = 5 * silentTime
	batchTime = silentTime / 2

	// grantTime is how long qtd may take to start after the login, and to start a daemon.
	grantTime = 20 * time.Second

	// answerTime is how long the daemon may take for its first answer: more than it gives a home that does not answer.
	// Without it, a connection that dies then would be waited for without end.
	answerTime = silentTime

	// endTime is how long ssh may take to end when it is told to. restTime is how long to wait for the rest of what it
	// says when it has ended, which a busy machine reads late: a program that ssh has started may keep its standard error
	// open.
	endTime  = 2 * time.Second
	restTime = endTime

	// KnockAfter is how long a login that may ask is let alone, before something else looks whether its server is there:
	// most servers have let the user in by then, and see one connection alone. If nothing is there, it is known as soon
	// as ssh knows that.
	KnockAfter = 500 * time.Millisecond

	// knockAgain is the time between connections, beside those that wait: TCP sends its first packet again after 1 and
	// 3 s. Where a third of the packets are lost each way, none of the dozen packets is answered in one of thousands of
	// cases.
	knockAgain = KnockAfter

	// knockTime is how long a server has to answer then. The user waits for the error. A round trip to a satellite and
	// back takes 0.6 s.
	knockTime = 8 * knockAgain

	// askTimeout bounds how long a daemon of this machine may take to answer, and askInterval is the least time between
	// two requests for a grant.
	askTimeout  = 5 * time.Second
	askInterval = askTimeout / 5
)
