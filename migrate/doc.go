// Package migrate decides how a client stays connected to its server: which paths work, when a path is suspect, which
// candidates (a transport, an interface and an address of the server) to dial then, and which connection to keep.
//
// Of the transports, QUIC is better than TCP, and TCP better than SSH. The manager does not wait for the better one:
// a session continues on the first that answers, and moves up to a better one while it is live.
//
// It is a pure machine: a [Manager] takes events, with the time, and returns actions. It has
// no socket, no goroutine and no clock. Its owner dials, closes and pings carriers as told,
// reports what it observes, and calls [Manager.Handle] again by [Manager.Deadline].
//
//	events                                                actions
//	NetworkChanged, Woke, Heard, Down  ──▶  Manager  ──▶  Dial, Activate, StandBy, Close, Abandon,
//	Unacked, Traffic, Starved, Answered,                  Ping, Knock
//	Bulk, nil (time passed)
//
// What is done when is one schedule (Manager.schedule), and all its times are in timers.go: rounds of dials and knocks
// without a path in redial.go and knock.go, dials beside one in beside.go. Detection is in path.go, the order of
// candidates in candidate.go; replace.go says which paths are kept, and bulk.go decides how many more carriers there
// are for bulk data (Dial with Bulk).
package migrate
