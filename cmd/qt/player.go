package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A player shows the output of a recording with its timing.
type player struct {
	events *asciicast.Reader
	out    io.Writer
	keys   <-chan byte   // or nil
	speed  float64       // 1 is the speed of the recording
	idle   time.Duration // bounds pauses, before speed; 0 does not

	resize func(size wire.Size) // follows the recorded terminal, or nil

	// rewind starts the recording anew, on an empty terminal. Nil if it cannot.
	rewind func() (*asciicast.Reader, error)

	number  int           // of the event that was read last, 1 is the first
	at      time.Duration // where the recording stands
	markers []marker      // that were passed
	paused  bool
	step    bool // show one output, and pause again
	seek    int  // show all at once: up to this event, or with nextMarker; 0 is off
}

// A marker is a place in a recording.
type marker struct {
	number int
	at     time.Duration
}

const (
	// nextMarker is the seek up to the next marker, or to the end.
	nextMarker = -1

	// minSpeed and maxSpeed bound the speed. Each key doubles or halves it.
	minSpeed, maxSpeed = 1.0 / 64, 1024.0

	// nearMarker is how long after a marker the key for the previous marker goes to the one before
	// it.
	nearMarker = time.Second
)

// errQuit ends a player whose user has quit.
var errQuit = errors.New("quit")

// play shows the recording until it ends or the user quits.
func (p *player) play(ctx context.Context) error {
	for {
		e, err := p.events.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		p.number++
		var size wire.Size
		switch e.Code {
		case asciicast.Output, asciicast.Marker:
		case asciicast.Resize:
			cols, rows, ok := asciicast.ParseSize(e.Data)
			if size = (wire.Size{Cols: uint16(cols), Rows: uint16(rows)}); !ok || p.resize == nil {
				continue
			}
		default:
			continue
		}
		again, err := p.wait(ctx, e.At-p.at)
		if errors.Is(err, errQuit) {
			return nil
		}
		if err != nil {
			return err
		}
		if again {
			continue
		}
		p.at = e.At
		switch e.Code {
		case asciicast.Marker:
			p.markers = append(p.markers, marker{p.number, e.At})
		case asciicast.Resize:
			p.resize(size)
		default:
			p.step = false
			if _, err := io.WriteString(p.out, e.Data); err != nil {
				return err
			}
		}
		if p.number == p.seek || p.seek == nextMarker && e.Code == asciicast.Marker {
			p.seek = 0
		}
	}
}

// wait waits until something is to be shown that comes left after what was shown last. It reports
// whether the recording was rewound instead.
func (p *player) wait(ctx context.Context, left time.Duration) (rewound bool, err error) {
	if p.idle > 0 {
		left = min(left, p.idle)
	}
	for {
		if p.step || p.seek != 0 || left <= 0 && !p.paused { // without a timer, for speed
			select {
			case key, ok := <-p.keys:
				if rewound, err := p.key(key, ok); rewound || err != nil {
					return rewound, err
				}
				continue
			case <-ctx.Done():
				return false, context.Cause(ctx)
			default:
				return false, nil
			}
		}
		var due <-chan time.Time
		if !p.paused {
			due = time.After(time.Duration(float64(left) / p.speed))
		}
		since, paused, speed := time.Now(), p.paused, p.speed
		select {
		case <-due:
			return false, nil
		case key, ok := <-p.keys:
			if rewound, err := p.key(key, ok); rewound || err != nil {
				return rewound, err
			}
			if !paused {
				left -= time.Duration(float64(time.Since(since)) * speed)
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// key handles a key, or that there will be none.
func (p *player) key(key byte, ok bool) (rewound bool, err error) {
	const ctrlC = 3
	if !ok {
		return false, errQuit
	}
	switch key {
	case ' ':
		p.paused = !p.paused
	case '.':
		p.step = p.paused
	case '+', '=':
		p.speed = min(2*p.speed, maxSpeed)
	case '-', '_':
		p.speed = max(p.speed/2, minSpeed)
	case ']':
		p.seek = nextMarker
	case '[':
		return p.back()
	case 'q', ctrlC:
		return false, errQuit
	}
	return false, nil
}

// back rewinds, and seeks the marker before.
func (p *player) back() (rewound bool, err error) {
	if p.rewind == nil {
		return false, nil
	}
	to := 0
	for _, m := range p.markers {
		if m.at+nearMarker <= p.at {
			to = m.number
		}
	}
	if p.events, err = p.rewind(); err != nil {
		return false, err
	}
	p.number, p.at, p.markers, p.step, p.seek = 0, 0, nil, false, to
	return true, nil
}
