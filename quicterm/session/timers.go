package session

import "time"

// All times of this package follow. Three are chosen: what a person does not notice
// (shortAckDelay), the time from key to key (keyGap), and how soon a path that works again must be known (maxResend).
// With them, everything is computed from the round trip that is measured (rtt.timeout).
const (
	// shortAckDelay is how long an ack waits for a frame that shares its datagram: longer than a terminal takes to
	// echo a key, shorter than a person notices.
	shortAckDelay = 5 * time.Millisecond

	// minVariation keeps timers above the jitter of a busy machine.
	minVariation = shortAckDelay

	// firstCopy is the time from a datagram to its first copy, where loss is seen: longer than shortAckDelay, so that
	// the ack of what has arrived makes copies needless on a short path, and short beside any round trip that a person
	// feels. The time to the next copy doubles, so that few bursts of loss take all of them.
	firstCopy = 6 * shortAckDelay / 5

	// minLateRTT is the shortest round trip on which a late ack or a copy shows a loss. On shorter ones a person does
	// not notice how late a resend is, and acks are late because a machine is busy.
	minLateRTT = 4 * shortAckDelay

	// leastTook is the shortest time that counts as measured, whatever delay the peer claims.
	leastTook = time.Microsecond

	// keyGap is the time from one key to the next of a person who types slowly. Frames carry an ack that is due within
	// it, and the acks of small output wait as long if some loss is seen (Config.DelayAcks).
	keyGap = 250 * time.Millisecond

	// longAckDelay is the same while no loss is seen, and QUIC repairs what is lost: one ack in three keys is enough.
	longAckDelay = 12 * keyGap / 5

	// initialTimeout is how long the first ack may take: twice the round trip of a long path, so that a slow one is
	// not flooded before it is measured.
	initialTimeout = keyGap

	// firstMinRTTSpan is how long the shortest round trip of a new path counts at least: what has piled up in an outage
	// arrives at once and hides how short the path is, and it may not be like the last one.
	firstMinRTTSpan = initialTimeout

	// minRTTSpan is the same later: the path may have become longer. While it is measured anew, less is sent.
	minRTTSpan = 15 * maxResend

	// maxResend is the longest time between two resends: a dead path costs little then, and one that works again is
	// known soon enough.
	maxResend = time.Second

	// maxFirstProbe bounds the time until the first probe: the measured round trip may include an outage.
	maxFirstProbe = 2 * maxResend

	// maxConsumeProbe bounds the time between two probes for frames that have arrived and are not consumed, as with a
	// stopped terminal: some 50 bytes in half a minute.
	maxConsumeProbe = 30 * maxResend

	// minDead is how long at least a bulk carrier may deliver nothing while others do, before it is closed: TCP repairs
	// what it has lost earlier, most often.
	minDead = maxResend

	// backlogInterval is how often the peer is told of a long backlog, for a person who watches it.
	backlogInterval = maxResend

	// bulkMemory is how long acks are not delayed after more than a person types came: the sender waits for them.
	bulkMemory = maxResend

	// duplicateMemory is how long acks are not delayed after a frame has come twice: the sender expects loss.
	duplicateMemory = 2 * maxResend

	// maxReportedDelay is the longest delay that an ack reports: no longer round trip is measured.
	maxReportedDelay = 10 * maxResend

	// limitedFor is how long frames must have waited to be sent, before that counts as a backlog that lasts: longer than
	// a screen of a program takes on most paths. limitedGap is the longest time between two moments at which they did.
	limitedFor = maxResend / 10
	limitedGap = 3 * limitedFor

	// limitedInterval is how often the peer is told so, and peerLimitedFor how long that holds.
	limitedInterval = maxResend / 2
	peerLimitedFor  = 3 * limitedInterval

	// agedAfter is how old a frame is when the peer is told that it is old: a program that has asked its terminal
	// something does not wait longer for the answer. ageStep is how exactly the time of frames is recorded.
	agedAfter = 5 * maxResend
	ageStep   = maxResend

	// obscureGrid is the time between two packets, and obscureFor how long dummies follow the last key. Both
	// are as ssh's ObscureKeystrokeTiming has them: keys are 80 ms apart at least, and a second is a long pause.
	obscureGrid = 4 * shortAckDelay
	obscureFor  = maxResend
)

// SendTime returns when a lane of a carrier has something to send: now or earlier if Stream or Datagram would return
// bytes, and zero if only an event can change that. It changes nothing.
func (e *Endpoint) SendTime(now time.Time, id CarrierID, lane Lane) time.Time {
	c := e.carriers[id]
	switch {
	case c == nil:
		return time.Time{}
	case lane == StreamLane:
		return e.streamTime(now, c)
	}
	return e.datagramTime(now, c)
}

// due reports whether a time that is set has come.
func due(now, at time.Time) bool { return !at.IsZero() && !now.Before(at) }

// earlier returns the earlier of two times, of which either may be zero for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
