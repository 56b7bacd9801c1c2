package quic

import (
	"context"
	"crypto/tls"
	"sync"
	"time"
)

// An earlyGate works around a data race of quic-go with early data (https://github.com/quic-go/quic-go/issues/4303):
// quic-go writes the server's transport parameters when the server answers, and reads them, without a lock, to open a
// stream and for each datagram. The gate delays the answer until the stream is open, and delays datagrams from the
// answer until the handshake is complete.
//
// It learns of the answer as the [tls.Config.ClientSessionCache] and as the
// [tls.Config.KeyLogWriter]: crypto/tls writes the first secrets there before it passes on
// the rest of the answer.
type earlyGate struct {
	tls.ClientSessionCache
	ctx    context.Context
	opened chan struct{} // closed once the stream is open
	hold   bool          // delay the answer; for the goroutine of crypto/tls alone

	wanted bool // the dial is to use early data

	mu       sync.Mutex
	sent     int  // datagrams before the answer
	answered bool // the server's answer is being processed
}

const (
	// maxEarlyDatagrams is how many datagrams pass the gate: fewer than quic-go queues, so that
	// no call blocks while it holds the gate's mutex.
	maxEarlyDatagrams = 16

	// The answer is delayed by at most holdTurns times holdTurn, a second. A ticket may be useless for
	// early data, for instance too old, and then the stream opens only after the answer. A process
	// that stalls meanwhile gets its time: a stall ends only one turn.
	holdTurns = 20
	holdTurn  = 50 * time.Millisecond
)

// newEarlyGate returns a gate for a dial with the given context, and a copy of conf that uses the gate.
func newEarlyGate(ctx context.Context, conf *tls.Config, wanted bool) (*earlyGate, *tls.Config) {
	g := &earlyGate{ClientSessionCache: conf.ClientSessionCache, ctx: ctx, opened: make(chan struct{}), wanted: wanted}
	conf = conf.Clone()
	conf.KeyLogWriter = g
	if conf.ClientSessionCache != nil {
		conf.ClientSessionCache = g
	}
	return g, conf
}

// Get implements [tls.ClientSessionCache]. It returns a copy of the session: quic-go writes
// into it whether this dial has early data, and several dials may use a session at once.
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

// Put implements [tls.ClientSessionCache]. It ignores nil, with which crypto/tls removes a session when a handshake
// fails: most fail because no server has answered, or because another dial was faster.
func (g *earlyGate) Put(key string, session *tls.ClientSessionState) {
	if session != nil {
		g.ClientSessionCache.Put(key, session)
	}
}

// Write is called with a line of the key log, which it ignores. It delays the answer.
func (g *earlyGate) Write(line []byte) (int, error) {
	if g.hold {
		g.awaitStream()
		g.hold = false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answered = true
	return len(line), nil
}

// awaitStream blocks until the stream is open, for a bounded time.
func (g *earlyGate) awaitStream() {
	for range holdTurns {
		select {
		case <-g.opened:
			return
		case <-g.ctx.Done():
			return
		case <-time.After(holdTurn):
		}
	}
}

// pass calls send unless the gate is closed. It reports whether the gate is closed.
func (g *earlyGate) pass(send func() error) (closed bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.answered || g.sent == maxEarlyDatagrams {
		return true, nil
	}
	g.sent++
	return false, send()
}
