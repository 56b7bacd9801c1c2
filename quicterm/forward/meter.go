package forward

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-yamux/v5"
)

// stallTime is how long an end waits for connections that do not take their bytes, before it ends some for the others:
// time to drain for a connection that moves at all.
const stallTime = 10 * time.Second

// A meter reads the pipe for yamux, and stops while the streams have too much that was not read: the first windows of
// many streams together are larger than what the memory has for them. It is safe for concurrent use.
type meter struct {
	r io.Reader

	// Of the frames that were read last; for Read alone.
	header []byte
	body   uint32 // bytes of it that are still to come

	client bool
	less   chan struct{} // has one when there is less unread, or the end

	mu     sync.Mutex
	last   uint32            // the stream that this end has opened last
	unread map[uint32]unread // of the streams that are open
	total  int               // what all of that takes
	ended  bool
}

// unread is what came by a stream and was not read. yamux keeps each frame by itself.
type unread struct {
	stream        *Stream // nil until it was opened or accepted
	bytes, frames int
}

// frameCost is the memory in bytes that a frame takes beside its body, at least.
const frameCost = 64

func (u unread) cost() int { return u.bytes + frameCost*u.frames }

func newMeter(r io.Reader, client bool) *meter {
	return &meter{r: r, client: client, less: make(chan struct{}, 1), unread: make(map[uint32]unread)}
}

// The frames of yamux: version u8, type u8, flags u16, stream u32, length u32; data has a body of that length.
const (
	headerSize = 12
	typeData   = 0
	typeWindow = 1
	flagSYN    = 1
)

var errTooMany = errors.New("the other end of the side pipe opens too many streams")

// Read implements [io.Reader].
func (m *meter) Read(b []byte) (int, error) {
	m.wait()
	n, err := m.r.Read(b)
	if countErr := m.count(b[:n]); countErr != nil {
		return 0, countErr
	}
	return n, err
}

// wait waits for room. Streams that nobody reads make room at last.
func (m *meter) wait() {
	if !m.full() {
		return
	}
	stalled := time.NewTicker(stallTime)
	defer stalled.Stop()
	for m.full() {
		select {
		case <-m.less:
		case <-stalled.C:
			m.drop()
		}
	}
}

func (m *meter) full() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total >= maxUnread && !m.ended
}

// drop ends the streams that have most unread, until half of the room is free.
func (m *meter) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(m.unread), func(a, b uint32) int {
		return cmp.Compare(m.unread[b].cost(), m.unread[a].cost())
	}) {
		if s := m.unread[id].stream; s != nil && m.total > maxUnread/2 {
			if s.conn != nil {
				Abort(s.conn)
			}
			m.forgetLocked(id)
			go s.Stream.Reset() // this waits until the other end reads the pipe, which may wait for this one
		}
	}
}

// lessUnread tells wait that there may be room.
func (m *meter) lessUnread() {
	select {
	case m.less <- struct{}{}:
	default:
	}
}

func (m *meter) count(b []byte) error {
	for len(b) > 0 {
		if m.body > 0 {
			n := min(len(b), int(m.body))
			m.body -= uint32(n)
			b = b[n:]
			continue
		}
		n := min(len(b), headerSize-len(m.header))
		m.header = append(m.header, b[:n]...)
		b = b[n:]
		if len(m.header) < headerSize {
			return nil
		}
		flags, id := binary.BigEndian.Uint16(m.header[2:]), binary.BigEndian.Uint32(m.header[4:])
		if m.header[1] == typeData {
			m.body = binary.BigEndian.Uint32(m.header[8:])
		}
		m.header = m.header[:0]
		if err := m.came(id, flags&flagSYN != 0, int(m.body)); err != nil {
			return err
		}
	}
	return nil
}

// came records the frame of a stream. Of streams that were forgotten, nothing is kept.
func (m *meter) came(id uint32, begins bool, n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id == 0 { // of the session
		return nil
	}
	if own := (id%2 == 1) == m.client; begins || own && id > m.last { // this one is being opened now
		m.knowLocked(id)
	}
	if len(m.unread) > 4*maxStreams { // each end opens half of that, and few are closed but not forgotten
		return errTooMany
	}
	if u, known := m.unread[id]; known && n > 0 {
		m.setLocked(id, unread{u.stream, u.bytes + n, u.frames + 1})
	}
	return nil
}

// open returns a stream that this end has opened.
func (m *meter) open(of *yamux.Stream) *Stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.knowLocked(of.StreamID())
	m.last = of.StreamID()
	return m.streamLocked(of)
}

// accept returns a stream that the other end has opened.
func (m *meter) accept(of *yamux.Stream) *Stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.streamLocked(of)
}

func (m *meter) streamLocked(of *yamux.Stream) *Stream {
	s := &Stream{Stream: of, meter: m, window: firstWindow}
	if u, known := m.unread[of.StreamID()]; known {
		u.stream = s
		m.unread[of.StreamID()] = u
	}
	return s
}

// sends returns what to send in place of a frame of yamux. When yamux doubles a window, it tells by how much, but not of
// the half that was read since it told last, at least, and of which it tells only otherwise. The other end would then
// have to wait for a round trip each time that it has sent half a window.
func (m *meter) sends(frame []byte) []byte {
	if len(frame) != headerSize || frame[1] != typeWindow || binary.BigEndian.Uint16(frame[2:]) != 0 {
		return frame
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.unread[binary.BigEndian.Uint32(frame[4:])].stream
	grown := binary.BigEndian.Uint32(frame[8:])
	if s == nil || int(grown) != s.window { // otherwise it is less: a read takes much less than half a window
		return frame
	}
	s.window *= 2
	return binary.BigEndian.AppendUint32(slices.Clone(frame[:8]), grown+grown/2)
}

// join says which connection takes the bytes of a stream.
func (m *meter) join(s *Stream, c Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.conn = c
}

func (m *meter) knowLocked(id uint32) {
	if _, known := m.unread[id]; !known {
		m.unread[id] = unread{}
	}
}

func (m *meter) read(id uint32, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u, known := m.unread[id]; known {
		u.bytes -= n
		m.setLocked(id, unread{u.stream, u.bytes, min(u.frames, u.bytes)}) // each has a byte
		m.lessUnread()
	}
}

func (m *meter) setLocked(id uint32, u unread) {
	m.total += u.cost() - m.unread[id].cost()
	m.unread[id] = u
}

func (m *meter) forget(id uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked(id)
	m.lessUnread()
}

func (m *meter) forgetLocked(id uint32) {
	m.total -= m.unread[id].cost()
	delete(m.unread, id)
}

func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	m.lessUnread()
}
