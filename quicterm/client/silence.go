package client

import (
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
)

const (
	// maxUnheard is how many pings in a row may stay without a packet of the server before the connection counts as
	// lost. They are counted, not timed: a client that was stopped has sent none meanwhile.
	maxUnheard = 5

	// maxTrusted is after how many of them another connection may be tried beside it.
	maxTrusted = 2
)

// closeIfSilent closes a connection when the server falls silent, until stop is called. Before
// that, it calls suspect. QUIC itself would notice that after a minute or more, and TCP never.
// It does nothing with carriers that are neither.
func closeIfSilent(conn carrier.Carrier, suspect func()) (stop func()) {
	if c, ok := conn.(interface{ EndIfSilent(time.Duration) }); ok {
		c.EndIfSilent((maxUnheard + 1) * loginPing)
		return func() { c.EndIfSilent(0) }
	}
	stats, ok := conn.(carrier.StatsReader)
	if !ok || !conn.Datagrams() {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(loginPing)
		defer ticker.Stop()
		heard, unheard := uint64(0), 0
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			if n := stats.Stats().PacketsReceived; n != heard {
				heard, unheard = n, 0
			} else if unheard++; unheard > maxUnheard {
				conn.Close()
				return
			} else if unheard == maxTrusted {
				suspect()
			}
			if err := conn.SendDatagram(session.AppendPing(nil, false)); err != nil {
				return
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}
