package forwards

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quicterm/quicterm/quicterm/forward"
)

// An entry is a forward that has begun.
type entry struct {
	Spec
	id     uint32 // as of wire.Listen
	open   atomic.Int64
	counts forward.Counts

	listeners []net.Listener // of this machine

	// For a Remote, guarded by the list's mu.
	pipe   *pipe // on which the server listens
	stream *forward.Stream
}

// error says which forward an error is about.
func (e *entry) error(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("-%c %v: %w", e.Kind, e.Listen, err)
}

// join is [forward.Join], and counts.
func (e *entry) join(s *forward.Stream, c forward.Conn, ready func() error) {
	e.open.Add(1)
	defer e.open.Add(-1)
	forward.Join(s, c, &e.counts, ready)
}

// close ends the listeners of this machine.
func (e *entry) close() {
	for _, l := range e.listeners {
		l.Close()
	}
}

// A list has the forwards of a client.
type list struct {
	mu      sync.Mutex
	entries []*entry
	next    uint32
}

func (l *list) enter(spec Spec) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &entry{Spec: spec, id: l.next}
	l.next++
	l.entries = append(l.entries, e)
	return e
}

// remove has nothing listen for a forward any more. Its connections continue.
func (l *list) remove(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = slices.DeleteFunc(l.entries, func(other *entry) bool { return other == e })
	e.close()
	if e.stream != nil {
		go e.stream.Reset() // it may wait for the network
	}
}

func (l *list) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		e.close()
	}
}

func (l *list) all() []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// missing returns the forwards for which the server should listen on a side pipe, and does not.
func (l *list) missing(p *pipe) (entries []*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.Kind == Remote && (p == nil || e.pipe != p) {
			entries = append(entries, e)
		}
	}
	return entries
}

// listening records that the server listens for a forward until the stream ends. It returns false if the forward was
// removed meanwhile.
func (l *list) listening(e *entry, p *pipe, stream *forward.Stream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.pipe, e.stream = p, stream
	return slices.Contains(l.entries, e)
}

// remote returns the forward for whose listener the server has accepted a connection, or nil.
func (l *list) remote(id uint32) *entry {
	for _, e := range l.all() {
		if e.id == id && e.Kind == Remote {
			return e
		}
	}
	return nil
}
