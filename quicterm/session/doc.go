// Package session is the resumable pair of logs that a terminal session is
// made of, as pure state: it has no socket, no goroutine and no clock.
//
// Each end of an attachment has a [Peer]. It sends the frames of a
// [buffer.Ring] and receives those of the other end's ring, over any number of
// carriers that come and go. What a carrier brings is only a hint: the numbers
// on the frames decide, so a frame may be sent again, by any way, at any time,
// and is still delivered in its place, once.
//
// A carrier has up to two lanes:
//
//   - The stream is reliable and in order. It carries consecutive frames from
//     at most the first that the other end misses, and skips only what the
//     other end has acknowledged.
//   - Datagrams may be lost, doubled and reordered. While everything that is
//     unacknowledged fits into one, it travels as a datagram that carries all
//     of it, so that each heals every loss before it. It is sent again until
//     it is acknowledged.
//
// The owner of a Peer tells it what happens (Up, Down, Receive, Appended,
// Consumed) with the time, asks it what to send (Stream, Datagram) and when to
// ask again (Deadline), and takes what was delivered (Take).
package session
