package hub

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// MaxData bounds the bytes of a stream in one message.
	MaxData = 32 << 10

	// FirstWindow is how many bytes may be sent on a new stream before its receiver says more: what a login takes, so that
	// a thousand idle streams cost a host 64 MiB at most.
	FirstWindow = 64 << 10

	// MaxWindow bounds the bytes of a stream that are on their way or not read: 60 MB/s at a round trip of 17 ms, or what a
	// fast network moves while a hub is stopped for a moment.
	MaxWindow = 1 << 20

	// frameHeader is the length of what is before the bytes of a stream in a message: its kind and its number.
	frameHeader = 1 + 8
)

// Kinds of messages of a stream. All but Reset are numbered from 0 in each direction.
const (
	Data   = 1 // bytes of the stream
	Credit = 2 // how many bytes the other end may send, counted from the beginning of the stream
	Fin    = 3 // no more bytes come
	Reset  = 4 // the sender knows the stream no more, and reads nothing of it
)

// Errors of a stream whose messages do not continue each other.
var (
	ErrOrder  = errors.New("a message of the stream was lost or repeated on its way")
	ErrWindow = errors.New("the other end has sent more than it may")
	ErrFrame  = errors.New("a message that is none of a stream")
)

// A Frame is a message of a stream.
type Frame struct {
	Kind   byte
	Seq    uint64 // its number, of all but Reset
	Data   []byte // of Data; it is a part of the message
	Credit uint64 // of Credit
}

// ParseFrame reads a message. A longer one than its kind has is an error.
func ParseFrame(message []byte) (f Frame, err error) {
	if len(message) < frameHeader {
		return f, ErrFrame
	}
	f.Kind, f.Seq = message[0], binary.BigEndian.Uint64(message[1:])
	rest := message[frameHeader:]
	switch {
	case f.Kind == Data && len(rest) > 0 && len(rest) <= MaxData:
		f.Data = rest
	case f.Kind == Credit && len(rest) == 8:
		f.Credit = binary.BigEndian.Uint64(rest)
	case f.Kind == Fin && len(rest) == 0:
	case f.Kind == Reset && len(rest) == 0 && f.Seq == 0:
	default:
		return Frame{}, ErrFrame
	}
	return f, nil
}

// ResetFrame returns a message that ends a stream.
func ResetFrame() []byte { return frame(Reset, 0, 0) }

func frame(kind byte, seq uint64, room int) []byte {
	message := make([]byte, frameHeader, frameHeader+room)
	message[0] = kind
	binary.BigEndian.PutUint64(message[1:], seq)
	return message
}

// A Flow is the state of one end of a stream: the numbers of its messages, what may be sent, and what was. It has no
// bytes, and is not safe for concurrent use. The messages that it returns must be sent in the order in which it has
// returned them. After an error the stream has ended.
type Flow struct {
	sendSeq, receiveSeq  uint64 // of the next message
	sent, allowed        uint64 // bytes
	received, granted    uint64 // bytes
	consumed, grownAt    uint64 // bytes: grownAt is consumed when the window has grown
	window               uint64
	finSent, finReceived bool
}

// NewFlow returns the state of a stream whose other end may send FirstWindow bytes, and this end allowed bytes.
func NewFlow(allowed uint64) *Flow {
	return &Flow{allowed: min(allowed, MaxWindow), granted: FirstWindow, window: FirstWindow}
}

// Receive takes the next message of the other end.
func (f *Flow) Receive(message []byte) (Frame, error) {
	m, err := ParseFrame(message)
	if err != nil {
		return m, err
	}
	if m.Kind == Reset {
		return m, nil
	}
	if m.Seq != f.receiveSeq {
		return Frame{}, fmt.Errorf("%w: number %d in place of %d", ErrOrder, m.Seq, f.receiveSeq)
	}
	f.receiveSeq++
	switch m.Kind {
	case Data:
		if f.finReceived {
			return Frame{}, ErrFrame
		}
		if f.received += uint64(len(m.Data)); f.received > f.granted {
			return Frame{}, ErrWindow
		}
	case Credit:
		if m.Credit < f.allowed || m.Credit > f.sent+MaxWindow {
			return Frame{}, ErrWindow
		}
		f.allowed = m.Credit
	case Fin:
		if f.finReceived {
			return Frame{}, ErrFrame
		}
		f.finReceived = true
	}
	return m, nil
}

// Send returns a message with the first bytes of b, as many as may be sent now, and how many: 0 if the other end must
// read first.
func (f *Flow) Send(b []byte) (message []byte, n int) {
	n = int(min(uint64(len(b)), MaxData, f.allowed-f.sent))
	if n == 0 || f.finSent {
		return nil, 0
	}
	message = append(frame(Data, f.sendSeq, n), b[:n]...)
	f.sendSeq++
	f.sent += uint64(n)
	return message, n
}

// Finish returns the message that no more bytes come, or nil if it was returned before.
func (f *Flow) Finish() []byte {
	if f.finSent {
		return nil
	}
	f.finSent = true
	message := frame(Fin, f.sendSeq, 0)
	f.sendSeq++
	return message
}

// Consume says that the user has read n bytes. It returns a message that lets the other end send more, or nil if that is
// not due. A window that was used up as a whole doubles, if grow gives it the memory.
func (f *Flow) Consume(n int, grow func(bytes uint64) bool) []byte {
	f.consumed += uint64(n)
	if f.finReceived {
		return nil
	}
	if f.window < MaxWindow && f.consumed-f.grownAt >= f.window && grow(f.window) {
		f.window *= 2
		f.grownAt = f.consumed
	}
	if f.granted-f.consumed > f.window/2 {
		return nil
	}
	return f.Grant()
}

// Grant returns a message with all that the other end may send. It also says that this end is still there.
func (f *Flow) Grant() []byte {
	f.granted = max(f.granted, f.consumed+f.window)
	message := binary.BigEndian.AppendUint64(frame(Credit, f.sendSeq, 8), f.granted)
	f.sendSeq++
	return message
}

// Window returns the bytes of memory that the stream may need.
func (f *Flow) Window() uint64 { return f.window }

// Ended reports whether both ends have sent all.
func (f *Flow) Ended() bool { return f.finSent && f.finReceived }

// Received reports whether all has come that the other end sends.
func (f *Flow) Received() bool { return f.finReceived }
