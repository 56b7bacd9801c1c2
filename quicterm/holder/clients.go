//go:build linux || darwin

package holder

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// history is how many bytes of output that a client has consumed are kept for the
	// next client of a terminal: some screens full.
	history = 256 << 10

	// maxLost is how many clients are kept that were displaced or lost their access, to be
	// told by whom when they come back.
	maxLost = 16

	// maxShares is how many of the guests may have come by shares.
	maxShares = 8

	// defaultMaxGuests is the limit of a launch that names none.
	defaultMaxGuests = 50

	// minRead is the least output that is read at once: about a packet.
	minRead = 1000

	// forever is the wait of output that only an event ends.
	forever time.Duration = math.MaxInt64 / 2
)

// A role is what an attachment may do.
type role uint8

const (
	// roleWriter sends input and receives output. The session is kept for it, and the program waits for it.
	roleWriter role = iota
	// roleShare is the same beside a writer, whom it does not displace.
	roleShare
	// roleWatch receives output, and has no effect on the session. rolePeek is the same, and nobody is told of it.
	roleWatch
	rolePeek
	// roleDisplaced lost the writer's role to another client. It is told so. New
	// output does not wake its carriers, which are closed soon.
	roleDisplaced
	// roleRevoked lost its access by Revoke. It is told so when it comes back.
	roleRevoked
	// roleNone left, or was displaced long ago: it cannot resume.
	roleNone
)

// writes reports whether a role sends input.
func (r role) writes() bool { return r == roleWriter || r == roleShare }

// receives reports whether output is sent to a role.
func (r role) receives() bool { return r <= rolePeek }

// clients are all attachments of a session. They decide together
//
//   - presence: whether a client is connected that the session is kept for,
//   - pacing: when the program must wait, and how much of its output is read at once,
//   - retention: which output stays in the ring.
//
// Only those that write count for these. The holder's gate guards them.
type clients struct {
	ring      *buffer.Ring
	pty       bool
	buffer    int // capacity of the ring
	maxGuests int

	all    []*attachment   // the one that came first first
	left   []wire.Presence // the last that shared or watched and have left, maxLeft at most
	taken  uint64          // frames of input that were taken
	number uint64          // of the last that came

	past session.Counters // of those that are forgotten

	drawn uint64 // the first frame that the emulator of a terminal needs

	lastEvent uint64 // the frame of the program's end in the log of events, or 0

	// unseen is the frame after the last that a writer was sent and has consumed, and its offset. A writer that
	// began with a snapshot was not sent the output before that, of which about hidden lines are missing.
	unseen, unseenOffset uint64
	hidden               uint64
	seen                 uint64 // the frame after the last that a writer has consumed, sent or not
	shown                uint64 // the same, of the writers that people type in
}

func newClients(ring *buffer.Ring, launch *wire.Launch) clients {
	return clients{
		ring: ring, pty: launch.PTY, buffer: max(launch.Buffer, buffer.MinCapacity),
		maxGuests: cmp.Or(launch.MaxWatchers, defaultMaxGuests), unseen: 1, seen: 1, drawn: 1,
	}
}

// writer returns the attachment that writes and came last, or nil.
func (s *clients) writer() *attachment {
	for _, a := range slices.Backward(s.all) {
		if a.role.writes() {
			return a
		}
	}
	return nil
}

func (s *clients) writers() iter.Seq[*attachment] {
	return func(yield func(*attachment) bool) {
		for _, a := range s.all {
			if a.role.writes() && !yield(a) {
				return
			}
		}
	}
}

// numbered returns the attachment that writes and has a number, or nil.
func (s *clients) numbered(number uint64) *attachment {
	for w := range s.writers() {
		if w.number == number {
			return w
		}
	}
	return nil
}

// nextInput returns the attachment whose input the program gets next, or nil if there is
// none: writers take turns, a frame each.
func (s *clients) nextInput() (next *attachment) {
	for a := range s.writers() {
		if a.endpoint.Pending() > 0 && a.entry.Seq == 0 && (next == nil || a.takenAt < next.takenAt) {
			next = a
		}
	}
	return next
}

// makeRoom reports whether another guest may come, a client beside the writer, by a share or not. For one above the limit,
// it returns which guest must be forgotten, if any may: the first of those that are away, or else, for one that has not come
// by a share, the first that has.
func (s *clients) makeRoom(now time.Time, share bool) (forget *attachment, ok bool) {
	var away, shared *attachment
	guests, shares := 0, 0
	for _, a := range s.all {
		if a.role == roleWriter || !a.role.receives() {
			continue
		}
		guests++
		if a.guest {
			shares++
			shared = cmp.Or(shared, a)
		}
		if a.away(now) && (a.guest || !share) {
			away = cmp.Or(away, a)
		}
	}
	if guests < s.maxGuests && (!share || shares < maxShares) {
		return nil, true
	}
	if forget = away; !share {
		forget = cmp.Or(away, shared)
	}
	return forget, forget != nil
}

// add adds an attachment. It returns those that it displaces.
func (s *clients) add(a *attachment) (displaced []*attachment) {
	if a.role == roleWriter {
		displaced = slices.Collect(s.writers())
	}
	for _, before := range displaced {
		before.role, before.displacedBy = roleDisplaced, a.displacer()
	}
	s.number++
	a.number = s.number
	s.all = append(s.all, a)
	return displaced
}

// forgetLost forgets the first that have lost their role, if those are many.
func (s *clients) forgetLost() {
	lost := 0
	for _, a := range slices.Backward(slices.Clone(s.all)) {
		if a.role != roleDisplaced && a.role != roleRevoked {
			continue
		}
		if lost++; lost > maxLost {
			s.remove(a)
		}
	}
}

// remove forgets an attachment, and closes its carriers.
func (s *clients) remove(a *attachment) {
	a.role = roleNone
	a.close()
	s.past = sum(s.past, a.endpoint.Counters())
	s.all = slices.DeleteFunc(s.all, func(other *attachment) bool { return other == a })
}

func (s *clients) find(id wire.InstanceID) *attachment {
	for _, a := range slices.Backward(s.all) {
		if a.instance == id {
			return a
		}
	}
	return nil
}

// askedBefore returns the attachment of a client process that asks again, or nil. A client that names no instance
// asks for another one each time.
func (s *clients) askedBefore(id wire.InstanceID) *attachment {
	if id == (wire.InstanceID{}) {
		return nil
	}
	return s.find(id)
}

// tellWriters tells the writers about another client, but no guest of a share.
func (s *clients) tellWriters(code byte, about *attachment) {
	for w := range s.writers() {
		if w != about && !w.guest {
			w.tell(code, about.presence().String())
		}
	}
}

// close closes all carriers, also those to come.
func (s *clients) close() {
	for _, a := range s.all {
		a.close()
	}
}

// present reports whether a client is connected that the session is kept for.
func (s *clients) present() bool {
	for w := range s.writers() {
		if w.connected() {
			return true
		}
	}
	return false
}

// members returns the clients that are connected, except those that only peek.
func (s *clients) members() (members []wire.Member) {
	for _, a := range s.all {
		if a.role < rolePeek && a.connected() {
			members = append(members, wire.Member{Client: a.client, Role: a.asked, Since: a.since.Unix()})
		}
	}
	return members
}

// appended makes the carriers send what was added to the ring.
func (s *clients) appended(now time.Time) {
	for _, a := range s.all {
		if a.role.receives() && !a.resting && !a.follows {
			a.endpoint.Appended(now)
			a.driver.Wake()
		}
	}
}

// wait returns for how long n bytes of output must wait as things are, or 0 if they may be appended now.
//
// Without a terminal they wait while they would push out of the ring what was not
// received: the program waits as at the end of any full pipe, for its own client alone. A program that was hung up
// waits only for a client that is connected, or it might never end.
//
// With a terminal they wait while a writer is connected, has as much outstanding as its path
// can take, has owed an ack for less than stallLimit, and does not skip.
func (s *clients) wait(now time.Time, n int, hungUp bool) (longest time.Duration) {
	if !s.pty {
		if s.ring.Room() < max(n, 1) {
			s.releaseKeeping(false)
		}
		if s.ring.Room() < max(n, 1) && (s.present() || !hungUp) {
			return forever
		}
		return 0
	}
	for w := range s.writers() {
		if w.connected() && !w.skipping && !w.skips && w.endpoint.Unacked() > s.backlog(now, w) {
			longest = max(longest, stallLimit-now.Sub(w.endpoint.UnackedSince()))
		}
	}
	return longest
}

// backlog returns how many bytes of a terminal's output may be outstanding to a writer: a little more than keeps its
// path busy. A key that stops a flood takes effect on the screen when all of that has arrived.
func (s *clients) backlog(now time.Time, w *attachment) int {
	window := w.endpoint.SendWindow(now)
	return min(window+window/16, s.buffer/2)
}

// readSize returns how much output is read at once. On a slow path that is little, so
// that a frame is sent quickly: nothing overtakes it.
func (s *clients) readSize(now time.Time) int {
	window := math.MaxInt
	for w := range s.writers() {
		window = min(window, w.endpoint.SendWindow(now))
	}
	if s.pty {
		return min(max(window/8, minRead), maxRead)
	}
	return pipeReadSize(window)
}

// pipeReadSize returns how much of a pipe's output is read at once, with a send window. A pipe's output is
// never dropped. A lost packet holds up the rest of its frame, so large frames are only for near paths.
func pipeReadSize(window int) int {
	frame := maxPipeRead + buffer.Overhead
	for frame > maxRead+buffer.Overhead && frame > window/32 {
		frame /= 2
	}
	return frame - buffer.Overhead
}

// release lets the ring forget what all writers have consumed, except a terminal's history, what
// is not drawn, and what a client that records has not got.
func (s *clients) release() { s.releaseKeeping(true) }

// releaseKeeping is release, which may not keep what a client that records has not got: a pipe has room for that only.
func (s *clients) releaseKeeping(recorded bool) {
	consumed := uint64(math.MaxUint64)
	for w := range s.writers() {
		c := w.endpoint.Consumed()
		if consumed = min(consumed, max(c, w.endpoint.First())); c < s.ring.First() {
			continue
		}
		s.seen = max(s.seen, c)
		if !w.isProgram() {
			s.shown = max(s.shown, c)
		}
		if c > s.unseen && w.from <= max(s.unseen, s.ring.First()) {
			s.unseen, s.unseenOffset, s.hidden = c, s.ring.Offset(c), 0
		}
	}
	if consumed == math.MaxUint64 {
		return
	}
	keep := consumed
	if s.pty {
		keep = min(keep, s.ring.Find(s.unseenOffset-min(history, s.unseenOffset)), s.drawn)
	}
	for _, a := range s.all {
		if recorded && a.records && a.role.receives() && (a.connected() || time.Since(a.left) < recorderGrace) {
			keep = min(keep, max(a.endpoint.Consumed(), a.endpoint.First()))
		}
	}
	s.ring.Release(keep)
}

// forgetHistory makes no client get the output before the frame that it returns: the first that a writer needs or
// that is not drawn.
func (s *clients) forgetHistory(drawn uint64) (first uint64) {
	first = min(s.seen, drawn)
	for w := range s.writers() {
		first = min(first, w.endpoint.Consumed())
		w.from = 0
	}
	if first > s.unseen {
		s.unseen, s.unseenOffset = first, s.ring.Offset(first)
	}
	s.hidden = 0
	return first
}

func sum(a, b session.Counters) session.Counters {
	a.Evicted += b.Evicted
	a.Duplicates += b.Duplicates
	a.Corrupted += b.Corrupted
	return a
}

// outstanding returns the size of what a writer is about to get that is connected and does
// not owe an ack for long: the most of any.
func (s *clients) outstanding(now time.Time) (most int) {
	for w := range s.writers() {
		if n := w.endpoint.Unacked(); w.connected() && n > 0 && now.Sub(w.endpoint.UnackedSince()) <= stallLimit {
			most = max(most, n+2*buffer.MaxSegment)
		}
	}
	return most
}
