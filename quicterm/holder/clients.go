//go:build linux || darwin

package holder

import (
	"math"
	"slices"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// history is how many bytes of output that a client has consumed are kept for the
	// next client of a terminal: some screens full.
	history = 256 << 10

	// stallLimit is how long a program on a terminal waits for a client that owes an
	// ack: after that the client counts as away.
	stallLimit = 15 * time.Second

	// maxDisplaced is how many clients are kept that were displaced or lost their access,
	// to be told by whom when they come back.
	maxDisplaced = 16

	// minRead is the least output that is read at once: about a packet.
	minRead = 1000

	// forever is the wait of output that only an event ends.
	forever time.Duration = math.MaxInt64 / 2
)

// A role is what an attachment may do.
type role uint8

const (
	// roleWriter sends the input and receives the output. The session is kept for it,
	// and the program waits for it.
	roleWriter role = iota
	// roleDisplaced lost the writer's role to another client. It is told so. New
	// output does not wake its carriers, which are closed soon.
	roleDisplaced
	// roleRevoked lost its access by Revoke. It is told so when it comes back.
	roleRevoked
	// roleNone left, or was displaced long ago: it cannot resume.
	roleNone
)

// receives reports whether output is sent to a role.
func (r role) receives() bool { return r == roleWriter }

// clients are all attachments of a session. They decide together
//
//   - presence: whether a client is connected that the session is kept for,
//   - pacing: when the program must wait, and how much of its output is read at once,
//   - retention: which output stays in the ring.
//
// One writer at a time is their policy. The holder's gate guards them.
type clients struct {
	ring   *buffer.Ring
	pty    bool
	buffer int // capacity of the ring

	all []*attachment // oldest first

	// The first frame that no writer has consumed, and its offset.
	unseen, unseenOffset uint64
}

func newClients(ring *buffer.Ring, pty bool, capacity int) clients {
	return clients{ring: ring, pty: pty, buffer: max(capacity, buffer.MinCapacity), unseen: 1}
}

// writer returns the attachment with the writer's role, or nil.
func (s *clients) writer() *attachment {
	for _, a := range slices.Backward(s.all) {
		if a.role == roleWriter {
			return a
		}
	}
	return nil
}

// untold reports whether a client has lost its access and was not told so yet.
func (s *clients) untold() bool {
	return slices.ContainsFunc(s.all, func(a *attachment) bool { return a.role == roleRevoked && !a.toldRevoked })
}

// add makes a the writer. It returns the attachment that it displaces, or nil.
func (s *clients) add(a *attachment) (before *attachment) {
	if before = s.writer(); before != nil {
		before.role, before.displacedBy = roleDisplaced, a.client
	}
	s.all = append(s.all, a)
	if len(s.all) > maxDisplaced+1 {
		s.remove(s.all[slices.IndexFunc(s.all, func(a *attachment) bool { return a.role != roleWriter })])
	}
	return before
}

// remove forgets an attachment, and closes its carriers.
func (s *clients) remove(a *attachment) {
	a.role = roleNone
	a.close()
	s.all = slices.DeleteFunc(s.all, func(other *attachment) bool { return other == a })
}

// find returns the attachment of a client process, or nil.
func (s *clients) find(id wire.InstanceID) *attachment {
	for _, a := range slices.Backward(s.all) {
		if a.instance == id {
			return a
		}
	}
	return nil
}

// close closes all carriers, also those to come.
func (s *clients) close() {
	for _, a := range s.all {
		a.close()
	}
}

// present reports whether a client is connected that the session is kept for.
func (s *clients) present() bool {
	w := s.writer()
	return w != nil && w.connected()
}

// names returns the clients that are connected.
func (s *clients) names() (names []string) {
	for _, a := range s.all {
		if a.role.receives() && a.connected() {
			names = append(names, a.client)
		}
	}
	return names
}

// appended makes the carriers send what was added to the ring.
func (s *clients) appended(now time.Time) {
	for _, a := range s.all {
		if a.role.receives() {
			a.endpoint.Appended(now)
			a.driver.Wake()
		}
	}
}

// wait returns for how long n bytes of output must wait as things are, or 0 if they may
// be appended now.
//
// Without a terminal they wait while they would push out of the ring what was not
// received: the program waits as at the end of any full pipe. A program that was hung up
// waits only for a client that is connected, or it might never end.
//
// With a terminal they wait while the writer is connected, has as much outstanding as
// its path can take, has owed an ack for less than stallLimit, and is not skipping.
func (s *clients) wait(now time.Time, n int, hungUp bool) time.Duration {
	if !s.pty {
		if s.ring.Room() < max(n, 1) && (s.present() || !hungUp) {
			return forever
		}
		return 0
	}
	w := s.writer()
	if w == nil || !w.connected() || w.skipping || w.endpoint.Unacked() <= s.backlog(now, w) {
		return 0
	}
	return max(stallLimit-now.Sub(w.endpoint.UnackedSince()), 0)
}

// backlog returns how many bytes of a terminal's output may be outstanding to the
// writer: a little more than keeps its path busy. A key that stops a flood takes effect
// on the screen when all of that has arrived.
func (s *clients) backlog(now time.Time, w *attachment) int {
	window := w.endpoint.SendWindow(now)
	return min(window+window/16, s.buffer/2)
}

// readSize returns how much output is read at once. On a slow path that is little, so
// that a frame is sent quickly: nothing overtakes it.
func (s *clients) readSize(now time.Time) int {
	w := s.writer()
	if !s.pty || w == nil {
		return maxRead
	}
	return min(max(w.endpoint.SendWindow(now)/8, minRead), maxRead)
}

// release lets the ring forget what the writer has consumed, except a terminal's history.
func (s *clients) release(w *attachment) {
	consumed := w.endpoint.Consumed()
	if consumed > s.unseen && consumed >= s.ring.First() {
		s.unseen, s.unseenOffset = consumed, s.ring.Offset(consumed)
	}
	keep := consumed
	if s.pty {
		keep = s.ring.Find(s.unseenOffset - min(history, s.unseenOffset))
	}
	s.ring.Release(min(keep, consumed))
}
