package carrier

import (
	"bytes"
	"sync"
)

// An earlyGate lets datagrams out as early data until the server answers. From
// then until the handshake is complete they have to wait: quic-go replaces what it
// knows of the server, which it reads for each datagram, without a lock
// (https://github.com/quic-go/quic-go/issues/4303).
type earlyGate struct {
	mu       sync.Mutex
	sent     int
	answered bool
}

// maxEarlyDatagrams is less than what quic-go queues, so none of them waits there
// with the gate's mutex held.
const maxEarlyDatagrams = 16

// Write learns that the server has answered: crypto/tls says which secrets it has
// before it hands on what else was in the answer. It implements
// [tls.Config.KeyLogWriter].
func (g *earlyGate) Write(line []byte) (int, error) {
	if !bytes.HasPrefix(line, []byte("CLIENT_EARLY_TRAFFIC_SECRET ")) {
		g.mu.Lock()
		g.answered = true
		g.mu.Unlock()
	}
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
