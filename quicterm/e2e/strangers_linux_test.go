package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// strangersMemory is what clients that prove nothing may cost the daemon at most, in bytes, with the usual settings.
const strangersMemory = 64 << 20

// Silent strangers at many addresses, more than max_unauthenticated, cost the daemon bounded memory. A
// client of yet another address logs in meanwhile.
func TestMemoryOfStrangers(t *testing.T) {
	strangers, sources, atOnce := 300, 100, 16
	if raceEnabled { // memory is not measured
		strangers, atOnce = 40, 4
	}
	h := newHostAlone(t)
	h.Settings["max_unauthenticated"] = "256"
	h.Start()
	wantOutput(t, h.QT("connect", "echo before"), "before\n")
	memory := func() (sum int) {
		for pid := range map[int]bool{h.Daemon.Process.Pid: true, h.Network(): true} {
			one, _ := usage(t, pid)
			sum += one
		}
		return sum
	}
	before := memory()
	most := before
	turns := make(chan struct{}, atOnce)
	conns := make([]*quic.Conn, strangers) // nil are those that were refused
	var dials sync.WaitGroup
	for n := range strangers {
		turns <- struct{}{}
		dials.Go(func() {
			defer func() { <-turns }()
			socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 9, byte(1+n%sources))})
			if err != nil {
				t.Error(err)
				return
			}
			conf := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}}
			conns[n], _ = quic.Dial(context.Background(), &quic.Socket{UDPConn: socket}, h.Addr, conf)
		})
		if n%20 == 0 {
			most = max(most, memory())
		}
	}
	dials.Wait()
	connected := 0
	for _, c := range conns {
		if c != nil {
			defer c.Close()
			connected++
		}
	}
	if connected < strangers/2 {
		t.Errorf("%d of %d strangers have connected: there is no flood", connected, strangers)
	}
	most = max(most, memory())
	wantOutput(t, h.QT("connect", "echo meanwhile"), "meanwhile\n")
	most = max(most, memory())
	t.Logf("%d strangers: %d MiB before, at most %d MiB", connected, before>>20, most>>20)
	if cost := most - before; !raceEnabled && cost > strangersMemory {
		t.Errorf("strangers cost the daemon %d MiB, want at most %d MiB", cost>>20, strangersMemory>>20)
	}
}
