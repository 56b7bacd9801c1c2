package wire

import (
	"fmt"
	"reflect"
)

// An EventKind is what has happened to a session.
type EventKind uint8

// The kinds of events. Clients ignore others. What programs tell (from EventTitle to EventNotification) proves nothing.
const (
	EventAttached     EventKind = 1 // a client has come, or is back after having been away for long
	EventDetached     EventKind = 2 // a client has left, is away for long, or has lost its access
	EventDisplaced    EventKind = 3 // another client has taken the place of one that wrote
	EventResized      EventKind = 4 // the terminal has another size
	EventTitle        EventKind = 5 // the terminal has another title
	EventDirectory    EventKind = 6 // the shell says that it is in another directory
	EventBegan        EventKind = 7 // the shell says that a command has begun, and when it has ended
	EventEnded        EventKind = 8
	EventBell         EventKind = 9
	EventNotification EventKind = 10
	EventPrompt       EventKind = 11 // the session's shell waits at its prompt, as the kernel says
	EventWaits        EventKind = 12 // another program waits for input, as the kernel says
	EventSilent       EventKind = 13 // nothing was printed for a while, and no program waits for input
	EventExited       EventKind = 14 // the session's program has ended
	EventOmitted      EventKind = 15 // the program has told more at once than is kept
	EventPortOpened   EventKind = 16 // a process of the session listens at Port, or no longer
	EventPortClosed   EventKind = 17
)

// MaxEventText is how many bytes the text of an event may have.
const MaxEventText = maxText

// An Event is the payload of a frame in the log of a session's events. Its number is that of the frame.
type Event struct {
	Kind   EventKind `cbor:"1,keyasint"`
	Time   int64     `cbor:"2,keyasint"`           // Unix milliseconds, by the clock of the holder
	Output uint64    `cbor:"3,keyasint,omitempty"` // an offset: what the session had put out by then, at least

	Client string `cbor:"4,keyasint,omitempty" text:"client"` // that has come, left or was displaced, or owns the size
	Role   Role   `cbor:"5,keyasint,omitempty"`               // of a client that has come or left
	By     string `cbor:"6,keyasint,omitempty" text:"client"` // who has displaced it
	Cols   uint16 `cbor:"7,keyasint,omitempty"`
	Rows   uint16 `cbor:"8,keyasint,omitempty"`

	// Text is a title, a directory as OSC 7 has it, the text of a notification, or the reason of an end.
	Text string `cbor:"9,keyasint,omitempty" text:"error"`

	Status *uint8 `cbor:"10,keyasint,omitempty"` // of a command or the program; nil if it is not known
	Took   int64  `cbor:"11,keyasint,omitempty"` // milliseconds that a command took
	Count  uint64 `cbor:"12,keyasint,omitempty"` // how many bells have rung, or events are omitted

	// Program is the name of the process in the foreground, if it is known, of a terminal that is still.
	Program string `cbor:"13,keyasint,omitempty" text:"name"`

	Port uint16 `cbor:"14,keyasint,omitempty"`
}

// Encode returns the payload of an Event frame.
func (e *Event) Encode() []byte {
	b, err := encMode.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("wire: %v", err)) // no value of these types fails
	}
	return b
}

// ParseEvent decodes the payload of an Event frame. Its texts are [Printable].
func ParseEvent(b []byte) (e Event, err error) {
	err = decMode.Unmarshal(b, &e)
	makePrintable(reflect.ValueOf(&e))
	return e, err
}
