package forward

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// A meter reads the pipe for yamux, and stops while the streams have too much that was not read: the first windows of
// many streams together are larger than what the memory has for them. It is safe for concurrent use.
type meter struct {
	r       io.Reader
	windows windows

	// Of the frames that were read last; for Read alone.
	header []byte
	body   uint32 // bytes of it that are still to come

	client bool

	mu     sync.Mutex
	less   sync.Cond         // there is less unread, or the end
	last   uint32            // the stream that this end has opened last
	unread map[uint32]unread // of the streams that are open
	total  int               // what all of that takes
	ended  bool
}

// unread is what came by a stream and was not read. yamux keeps each frame by itself.
type unread struct{ bytes, frames int }

// frameCost is the memory in bytes that a frame takes beside its body, at least.
const frameCost = 64

func (u unread) cost() int { return u.bytes + frameCost*u.frames }

func newMeter(r io.Reader, client bool) *meter {
	m := &meter{r: r, client: client, unread: make(map[uint32]unread)}
	m.less.L = &m.mu
	return m
}

// The frames of yamux: version u8, type u8, flags u16, stream u32, length u32; data has a body of that length.
const (
	headerSize = 12
	typeData   = 0
	flagSYN    = 1
)

var errTooMany = errors.New("the other end of the side pipe opens too many streams")

// Read implements [io.Reader].
func (m *meter) Read(b []byte) (int, error) {
	m.mu.Lock()
	for m.total >= maxUnread && !m.ended {
		m.less.Wait()
	}
	m.mu.Unlock()
	n, err := m.r.Read(b)
	if countErr := m.count(b[:n]); countErr != nil {
		return 0, countErr
	}
	return n, err
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
		m.setLocked(id, unread{u.bytes + n, u.frames + 1})
	}
	return nil
}

func (m *meter) open(id uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.knowLocked(id)
	m.last = id
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
		m.setLocked(id, unread{u.bytes, min(u.frames, u.bytes)}) // each has a byte
		m.less.Broadcast()
	}
}

func (m *meter) setLocked(id uint32, u unread) {
	m.total += u.cost() - m.unread[id].cost()
	m.unread[id] = u
}

func (m *meter) forget(id uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total -= m.unread[id].cost()
	delete(m.unread, id)
	m.less.Broadcast()
}

func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	m.less.Broadcast()
}
