package carrier

import (
	"context"
	"crypto/tls"
	"sync"
	"time"
)

// An earlyGate keeps two things apart that quic-go does without a lock where there
// is early data (https://github.com/quic-go/quic-go/issues/4303): it replaces what
// it knows of the server when that answers, and reads it to open a stream and for
// each datagram. So the answer waits until the stream is open, and datagrams have
// to wait from then until the handshake is complete.
//
// It looks on as the [tls.Config.ClientSessionCache], and as the
// [tls.Config.KeyLogWriter], to which crypto/tls tells the first secrets before it
// hands on what else is in the answer.
type earlyGate struct {
	tls.ClientSessionCache
	ctx    context.Context
	opened chan struct{} // closed once the stream is open
	hold   bool          // the answer; for the goroutine of crypto/tls

	wanted bool // early data is

	mu       sync.Mutex
	sent     int
	answered bool
}

const (
	// maxEarlyDatagrams is less than what quic-go queues, so none of them waits
	// there with the gate's mutex held.
	maxEarlyDatagrams = 16

	// maxHold bounds how long the answer waits: a ticket may turn out to be no
	// good for early data, as one that is too old, and then there is no stream before
	// the answer. On a busy machine it takes a while to open one.
	maxHold = time.Second
)

// newEarlyGate returns a gate for a dial with the given context, and conf with
// the gate in it.
func newEarlyGate(ctx context.Context, conf *tls.Config, wanted bool) (*earlyGate, *tls.Config) {
	g := &earlyGate{ClientSessionCache: conf.ClientSessionCache, ctx: ctx, opened: make(chan struct{}), wanted: wanted}
	conf = conf.Clone()
	conf.KeyLogWriter = g
	if conf.ClientSessionCache != nil {
		conf.ClientSessionCache = g
	}
	return g, conf
}

// Get returns a copy of a session: quic-go notes in it whether this dial has early
// data, and several may use it at once. It implements [tls.ClientSessionCache].
func (g *earlyGate) Get(key string) (*tls.ClientSessionState, bool) {
	cached, ok := g.ClientSessionCache.Get(key)
	if !ok {
		return nil, false
	}
	ticket, state, err := cached.ResumptionState()
	if err != nil || state == nil {
		return nil, false
	}
	g.hold = g.wanted && state.EarlyData
	own := *state
	session, err := tls.NewResumptionState(ticket, &own)
	return session, err == nil
}

// Put keeps a session. It does not give one up, as crypto/tls has it wherever a
// handshake fails: most fail because nobody has answered, or another was faster.
// It implements [tls.ClientSessionCache].
func (g *earlyGate) Put(key string, session *tls.ClientSessionState) {
	if session != nil {
		g.ClientSessionCache.Put(key, session)
	}
}

// Write is told of a secret, which it does not look at.
func (g *earlyGate) Write(line []byte) (int, error) {
	if g.hold {
		select {
		case <-g.opened:
		case <-g.ctx.Done():
		case <-time.After(maxHold):
		}
		g.hold = false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answered = true
	return len(line), nil
}

// pass calls send unless the gate is closed, which it reports.
func (g *earlyGate) pass(send func() error) (closed bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.answered || g.sent == maxEarlyDatagrams {
		return true, nil
	}
	g.sent++
	return false, send()
}
