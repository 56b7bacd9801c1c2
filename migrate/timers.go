package migrate

import "time"

// All times of this package, in order, except those of bulk data (bulk.go). What depends on a path is a number of round
// trips of it and one of these.
const (
	// grace is added to a number of round trips: an end may delay an ack by 25 ms, and a busy machine is late. It is also
	// the least time between two packets that look for a path, pings or dials: the better one wins if both work, and no
	// person notices.
	grace = 50 * time.Millisecond

	// urgentInterval is the time between knocks, and between pings on a path that is not trusted, while input waits. They
	// cost 0.9 kB/s, and find a path soon after it works again. No rounds of dials are closer, however often the network
	// changes.
	urgentInterval = 2 * grace

	// firstPTO is how long after its first packet QUIC sends it again, if nothing is known of the path. Each further time
	// is twice as long: the packets of a dial leave after 0, 0.2, 0.6 and 1.4 s. A dial ends just before one of them.
	firstPTO = 200 * time.Millisecond

	// laterDial is what a dial of QUIC has at least, without a trusted path, from the second round on: one packet.
	// firstDial is the same in the first round, in which another path may be slower than the last: two packets.
	laterDial = firstPTO - grace/5
	firstDial = 3*firstPTO - grace

	// noticeable is how late an answer is before a person notices. So long may input stay unacknowledged at least before
	// its path is suspect, and so long after the first round the second one follows, whose packets are not lost with those
	// of the first. Intervals of further rounds double from it.
	noticeable = 250 * time.Millisecond

	// TCPDelay is how long QUIC has to answer before TCP is dialed as well: QUIC has sent its first packets twice by then.
	// It is also the slack of acks over TCP, which sends a lost packet again after 200 ms.
	TCPDelay = 3 * firstPTO / 2

	// pingInterval is the time between pings that are not answered, in which QUIC probes the path a few times itself, so
	// that one lost packet is not enough. After it a path without an answer is suspect, or one of several is pinged, TCP
	// is dialed again, which repeats its first packet after the same time, and so is all else on new reason.
	pingInterval = time.Second

	// maxRound is the longest time between rounds while the user may be there, and how long a user counts as typing.
	maxRound = 8 * noticeable

	// patientDial is what the first dial of each candidate alone has, three packets: the path may be much slower than the
	// last, and something on it may drop knocks.
	patientDial = 7*firstPTO - 2*grace

	// dialTime is how long a dial of QUIC may take beside a trusted path: some round trips on the slowest ones. TCP needs
	// twice as many round trips, and SSH is dialed after both had this time, because each dial is a login.
	dialTime = 3 * pingInterval

	// keepaliveInterval is the time between pings on a silent path that is in use: NATs and radios keep a path for longer.
	// After three of them without a packet the link is offline.
	keepaliveInterval = 5 * time.Second

	// holdDown is how long a path is used at least before it is left while it works, and how long a path is kept that does
	// not prove itself beside one that works: time for some pings.
	holdDown = keepaliveInterval

	// slowRound is the time between rounds, and between knocks, after slowAfter without contact: the user has probably
	// left, and both cost battery.
	slowRound = 2 * keepaliveInterval
	slowAfter = 15 * ActiveFor

	// pingedFor is for how long from the beginning of an outage the congestion window of QUIC does not hold pings back.
	pingedFor = 4 * keepaliveInterval

	// patientInterval is how often a later dial of each candidate has dialTime, for the same reason as the first has
	// patientDial. The next round may be two maxRound away: it is within 20 s.
	patientInterval = pingedFor - 2*maxRound

	// keepaliveIdle is the time between pings if there was no traffic for ActiveFor: NATs forget a silent path of UDP
	// after 30 s (RFC 4787, REQ-5, asks for 2 minutes). As often the process that keeps the session must hear the client.
	keepaliveIdle = 5 * keepaliveInterval

	// ActiveFor is how long after traffic a path counts as in use, and after input the user as there. It bounds the time
	// between dials that keep failing, and an ack that is overdue for longer while packets arrive is no reason to suspect
	// the path: the process that keeps the session is stopped, and the network is not.
	ActiveFor = time.Minute

	// firstClimb and maxClimb bound the time between dials of a better transport than the one in use: a network that drops
	// UDP packets does so for hours.
	firstClimb = 3 * keepaliveInterval
	maxClimb   = 5 * ActiveFor

	// firstPenalty is how long a transport over an interface ranks behind others after its path has failed while another
	// worked. It doubles with each failure, up to maxPenalty: two weak networks take turns, but seldom.
	firstPenalty = ActiveFor / 2
	maxPenalty   = 32 * firstPenalty

	// renewAfter is how long the keys of a carrier are used: an attacker who breaks into an end reads at most the last day
	// of what was recorded on the way. QUIC and TLS update keys too, but from the same exchange. renewPause is for how
	// long that may wait for a pause of the traffic, and for the next dial if one fails.
	renewAfter = 24 * time.Hour
	renewPause = renewAfter / 24

	// MaxRenewEarly is the most that Config.RenewEarly is drawn as.
	MaxRenewEarly = 2 * renewPause
)
