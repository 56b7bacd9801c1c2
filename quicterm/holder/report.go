//go:build linux || darwin

package holder

import (
	"io"
	"net"
	"time"

	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// reportLocked describes the session to an operator.
func (h *Holder) reportLocked() *wire.Report {
	counters := h.clients.past
	for _, a := range h.clients.all {
		counters = sum(counters, a.endpoint.Counters())
	}
	r := &wire.Report{
		Software:   h.software,
		Name:       h.launch.Name,
		Phase:      h.phaseLocked(),
		Since:      h.life.since.Unix(),
		Created:    h.created.Unix(),
		PTY:        h.launch.PTY,
		Memory:     uint64(h.ring.Memory() + h.emulator.memory),
		Ring:       uint64(h.ring.Memory()),
		Capacity:   uint64(h.ring.Capacity()),
		Gaps:       counters.Evicted,
		Duplicates: counters.Duplicates,
		Corrupted:  counters.Corrupted,
		Status:     h.life.exit.Status,
		Reason:     h.life.exit.Reason,
	}
	if w := h.clients.writer(); w != nil {
		r.RTT = w.endpoint.BestRTT()
	}
	return r
}

// sum adds the counters that a Report has.
func sum(a, b session.Counters) session.Counters {
	a.Evicted += b.Evicted
	a.Duplicates += b.Duplicates
	a.Corrupted += b.Corrupted
	return a
}

// awaitEnd blocks until the session is over, if an Inspect asks for that. It reports false if the
// daemon has closed the connection before.
func (h *Holder) awaitEnd(c *net.UnixConn, m wire.Message) bool {
	var req wire.Inspect
	if err := m.Decode(&req); err != nil || !req.AtEnd {
		return true // Handle refuses what does not decode
	}
	c.SetDeadline(time.Time{})
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, c)
		close(gone)
	}()
	select {
	case <-h.end:
	case <-gone:
		return false
	}
	c.SetReadDeadline(time.Now()) // ends the goroutine
	<-gone
	c.SetWriteDeadline(time.Now().Add(requestTime))
	return true
}
