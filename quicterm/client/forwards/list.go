package forwards

import (
	"context"
	"fmt"
	"io"
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
	uses   uses
	asking sync.Mutex // held while the server is asked to listen

	listeners []io.Closer // of this machine, guarded by the list's mu
	flows     *flows      // nil without UDP

	life context.Context // of connections to the agent; nil of another kind
	end  context.CancelFunc

	// If the server listens, guarded by the list's mu.
	pipe   *pipe // on which the server listens
	stream *forward.Stream
}

// error says which forward an error is about.
func (e *entry) error(err error) error {
	if err == nil {
		return nil
	}
	if e.Kind == Agent {
		return fmt.Errorf("-A: %w", err)
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
	offered []uint16 // ports at which programs of the session listen
	closed  bool
}

func (l *list) enter(spec Spec) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &entry{Spec: spec, id: l.next}
	if spec.Listen.UDP {
		e.flows = newFlows()
	}
	if spec.Kind == Agent {
		e.life, e.end = context.WithCancel(context.Background())
	}
	l.next++
	l.entries = append(l.entries, e)
	return e
}

// remove ends the listeners of this machine for a forward. Its connections continue, except for those to an agent: they
// would use it for as long as the server wants. The caller resets the stream that it returns, if any, for which the server
// listens.
func (l *list) remove(e *entry) *forward.Stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = slices.DeleteFunc(l.entries, func(other *entry) bool { return other == e })
	e.close()
	if e.Kind == Agent {
		e.end()
	}
	return e.stream
}

func (l *list) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
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
		if e.Kind.there() && (p == nil || e.pipe != p) {
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
		if e.id == id && e.Kind.there() {
			return e
		}
	}
	return nil
}
