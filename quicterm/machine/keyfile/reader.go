//go:build linux || darwin

package keyfile

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/quota"
)

const (
	// maxPlaces bounds how many children read at a time, those that are slow excepted.
	maxPlaces = 16

	// A child that takes longer than slowTime leaves its place to another one. If maxSlow have done so, it is killed.
	// So homes that do not answer keep others waiting for slowTime at most.
	slowTime = time.Second
	maxSlow  = 64

	// maxStuck bounds the children without a place, also those that were killed and that
	// their file system keeps from ending. Above it, an account may have one child, and only
	// if its files could be read before. A child takes some MB of memory.
	maxStuck = 256

	// readTimeout is how long a child may take: a disk that sleeps or a home that is
	// mounted on demand takes some seconds.
	readTimeout = 10 * slowTime

	// maxChildren bounds the children of one account: the one that reads, and one that was killed and has not ended.
	maxChildren = 2

	// readRate is how often per second the keys of one account are read, and readBurst how
	// often at once. Above that, clients wait until the next read, which is for all of
	// them: an attacker who tries keys of one account costs a tenth of a core.
	readRate, readBurst = 10, 20

	// maxWaiting bounds the clients that wait for a read of one account, and maxHung those that wait if the last read
	// was given up: each occupies a place of the clients that have not logged in yet.
	maxWaiting, maxHung = 128, 4

	// maxBatch bounds the keys that a read is for, in bytes. A client's keys fit one message, wire.MaxMessage.
	maxBatch = 1 << 20
)

// Errors of a read. They say nothing about the keys.
var (
	errHung    = errors.New("the authorized_keys files cannot be read: the file system does not answer")
	errSilent  = errors.New("the program that prints keys does not end in time")
	errWaiting = errors.New("the authorized_keys files cannot be read: too many clients wait for that")
	errClosed  = errors.New("the server is stopping")
)

// A Reader asks what the authorized_keys files of accounts, and other sources, allow. It is safe for concurrent use.
type Reader struct {
	names  *account.NameService
	ctx    context.Context // ended by Close
	close  context.CancelCauseFunc
	places chan struct{}        // filled by children
	turns  *quota.Turns[uint32] // one an account: its second child is for when the first cannot be killed
	starts *quota.Rates[uint32] // of the reads of an account
	reads  sync.WaitGroup

	// The constants; tests set others.
	timeout           time.Duration
	maxSlow, maxStuck int

	mu       sync.Mutex
	slow     int // children that have left their places
	queues   map[source]*queue
	accounts map[uint32]*state
}

// A source is what is read together.
type source struct {
	account.Account
	sources string // as JSON
}

// A queue has the clients that wait for the next read of a source.
type queue struct{ waiting []*client }

type client struct {
	queries  []auth.Query
	sources  *Sources
	groups   []uint32
	runAs    *syscall.Credential // of the program among the sources; nil for that of the daemon
	verdicts []auth.Verdict
	err      error
	done     chan struct{} // closed when verdicts or err is set
}

// A state is that of an account's reads.
type state struct {
	children int  // that have neither answered nor ended
	hung     bool // the last read was given up
	answered bool // a read was answered
}

// NewReader returns a Reader. The caller closes it.
func NewReader(names *account.NameService) *Reader {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Reader{
		names:    names,
		timeout:  readTimeout,
		maxSlow:  maxSlow,
		maxStuck: maxStuck,
		ctx:      ctx,
		close:    cancel,
		places:   make(chan struct{}, maxPlaces),
		turns:    quota.NewTurns[uint32](0, 1),
		starts:   quota.NewRates[uint32](readRate, readBurst),
		queues:   make(map[source]*queue),
		accounts: make(map[uint32]*state),
	}
}

// Close fails all calls of Authorize and kills the children.
func (r *Reader) Close() {
	r.mu.Lock()
	r.close(errClosed)
	r.mu.Unlock()
	r.reads.Wait()
}

// Authorize finds out what the sources of an account allow keys (RFC 4253, 6.6), for clients at addresses: at login,
// and whenever it must be known whether a key is still allowed. They are read after the call: it sees each change
// that was made before. An error says that they could not be read, and nothing about the keys; a refusal is in the
// verdicts, which are in the order of the queries. Authorize blocks until the sources are read, for at most
// readTimeout once it is the account's turn, or until ctx ends.
func (r *Reader) Authorize(
	ctx context.Context, a *account.Account, sources *Sources, queries ...auth.Query,
) ([]auth.Verdict, error) {
	if sources.empty() {
		return slices.Repeat([]auth.Verdict{{Refused: auth.ErrNotAuthorized}}, len(queries)), nil
	}
	c := &client{queries: queries, sources: sources, done: make(chan struct{})}
	credential, err := r.names.Credential(ctx, a)
	if err != nil {
		return nil, err
	}
	if credential != nil {
		c.groups = credential.Groups
	}
	if sources.Program != nil {
		if c.runAs, err = r.names.Credential(ctx, sources.Program.Account); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(sources)
	if err != nil {
		return nil, err
	}
	if err := r.join(source{*a, string(text)}, c); err != nil {
		return nil, err
	}
	select {
	case <-c.done:
		return c.verdicts, c.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// join adds a client to those that wait for the next read of a source.
func (r *Reader) join(s source, c *client) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return errClosed
	}
	limit := maxWaiting
	if st := r.accounts[s.UID]; st != nil && st.hung {
		limit = maxHung
	}
	q := r.queues[s]
	if q == nil {
		q = new(queue)
		r.queues[s] = q
		r.reads.Go(func() { r.serve(s, q) })
	}
	if len(q.waiting) >= limit {
		return errWaiting
	}
	q.waiting = append(q.waiting, c)
	return nil
}

// stateLocked returns the state of an account. It forgets those of accounts that were not read lately.
func (r *Reader) stateLocked(uid uint32) *state {
	st := r.accounts[uid]
	if st == nil {
		if len(r.accounts) >= 1024 {
			for other, st := range r.accounts {
				if st.children == 0 {
					delete(r.accounts, other)
				}
			}
		}
		st = new(state)
		r.accounts[uid] = st
	}
	return st
}

// serve reads a source until no client waits.
func (r *Reader) serve(s source, q *queue) {
	for {
		end, err := r.turns.Take(r.ctx, s.UID)
		if err != nil {
			end = func() {} // next fails
		}
		batch, child, err := r.next(s, q)
		if len(batch) == 0 {
			end()
			return
		}
		var verdicts []auth.Verdict
		if err == nil {
			verdicts, err = child.read(s, batch)
		}
		for _, c := range batch {
			if c.err = err; err == nil {
				c.verdicts, verdicts = verdicts[:len(c.queries)], verdicts[len(c.queries):]
			}
			close(c.done)
		}
		end()
	}
}

// next waits until a child may read a source, and returns it with the clients to read for.
// If it returns an error, that is for these clients. Without clients it closes the queue.
func (r *Reader) next(s source, q *queue) ([]*client, *child, error) {
	r.mu.Lock()
	if len(q.waiting) == 0 {
		delete(r.queues, s)
		r.mu.Unlock()
		return nil, nil, nil
	}
	st := r.stateLocked(s.UID)
	if r.fullLocked(st) {
		defer r.mu.Unlock()
		return q.take(len(q.waiting)), nil, errHung
	}
	r.mu.Unlock()
	err := r.starts.Of(s.UID).Wait(r.ctx)
	if err == nil {
		select {
		case r.places <- struct{}{}:
		case <-r.ctx.Done():
			err = r.ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		return q.take(len(q.waiting)), nil, errClosed
	}
	st = r.stateLocked(s.UID) // it may have been forgotten
	if r.fullLocked(st) {
		<-r.places
		return q.take(len(q.waiting)), nil, errHung
	}
	st.children++
	n, size := 0, 0
	for _, c := range q.waiting {
		for _, query := range c.queries {
			size += len(query.Key)
		}
		if n > 0 && size > maxBatch {
			break
		}
		n++
	}
	return q.take(n), &child{reader: r, account: st, placed: true}, nil
}

// fullLocked reports whether an account must not have another child.
func (r *Reader) fullLocked(st *state) bool {
	if r.slow >= r.maxStuck {
		return st.children > 0 || !st.answered
	}
	return st.children >= maxChildren
}

func (q *queue) take(n int) []*client {
	taken := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return taken
}
