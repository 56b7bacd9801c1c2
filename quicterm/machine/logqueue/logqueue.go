// Package logqueue makes a log that never blocks those who log. Lines wait in a queue, from
// which one goroutine writes them. While the file, pipe or terminal that they go to takes
// none, further lines are dropped, and counted in the log when it takes them again.
package logqueue

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// maxBytes is how many bytes of lines wait: more than a busy daemon logs in a second. As
	// many again may be with the writer.
	maxBytes = 256 << 10

	// flushTime is how long Close waits until all is written: the log is not worth more.
	flushTime = time.Second
)

// A Queue is the lines that wait. It is the [io.Writer] of a handler, which writes each line in one call.
type Queue struct {
	log   *slog.Logger
	dst   io.Writer
	notes *slog.Logger  // of dropped lines, for run alone
	wake  chan struct{} // buffers one
	done  chan struct{} // closed when run returns

	mu      sync.Mutex // guards all below
	lines   [][]byte
	size    int // of lines, in bytes
	dropped int // lines after those in the queue
	closed  bool
}

// Start returns a queue of lines for dst, whose form newHandler decides, and starts its
// goroutine. The caller closes it.
func Start(dst io.Writer, newHandler func(io.Writer) slog.Handler) *Queue {
	q := &Queue{
		dst:   dst,
		notes: slog.New(newHandler(dst)),
		wake:  make(chan struct{}, 1),
		done:  make(chan struct{}),
	}
	q.log = slog.New(newHandler(q))
	go q.run()
	return q
}

// Logger returns the log. It may be used after Close: lines are then dropped.
func (q *Queue) Logger() *slog.Logger { return q.log }

// Write puts a line into the queue, or drops it. It never blocks, and returns no error.
func (q *Queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return len(line), nil
	}
	if q.dropped > 0 || q.size+len(line) > maxBytes {
		q.dropped++
		return len(line), nil
	}
	q.lines = append(q.lines, bytes.Clone(line))
	q.size += len(line)
	q.rouse()
	return len(line), nil
}

func (q *Queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run writes what is in the queue, until that is closed and empty. A line that cannot be
// written is lost: there is no other place to say so.
func (q *Queue) run() {
	defer close(q.done)
	for range q.wake {
		q.mu.Lock()
		lines, dropped, closed := q.lines, q.dropped, q.closed
		q.lines, q.size, q.dropped = nil, 0, 0
		q.mu.Unlock()
		for _, line := range lines {
			q.dst.Write(line)
		}
		if dropped > 0 {
			q.notes.Warn("log was blocked", "suppressed", dropped)
		}
		if closed {
			return
		}
	}
}

// Close waits until all lines are written, but not long. If the log is blocked, its goroutine
// continues until that ends.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.rouse()
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(flushTime):
	}
}
