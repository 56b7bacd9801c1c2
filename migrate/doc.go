// Package migrate decides how a client stays connected to its server: which paths work, when
// a path is suspect, which candidates (an interface and an address of the server) to dial
// then, and which connection to keep.
//
// It is a pure machine: a [Manager] takes events, with the time, and returns actions. It has
// no socket, no goroutine and no clock. Its owner dials, closes and pings carriers as told,
// reports what it observes, and calls [Manager.Handle] again by [Manager.Deadline].
//
//	events                                                actions
//	NetworkChanged, Woke, Heard, Down  ──▶  Manager  ──▶  Dial, Activate, Close, Ping
//	Unacked, Traffic, Starved,
//	nil (time passed)
//
// Detection is in path.go, dialing in redial.go, and the order of candidates in candidate.go.
package migrate
