//go:build linux

package main

import (
	"net"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// netnsTestLink is a link of a stage in namespaces.
func netnsTestLink(m *measurement, seed uint64) testLink {
	s := newNetnsStage(m, seed).(*netnsStage)
	at := s.seat(m, 0, netem.Config{})
	l := testLink{set: at.Set}
	l.tcp = func(m *measurement) []check { return s.checkTCP(m, at) }
	s.server.Do(func() (err error) {
		l.server, err = net.ListenUDP("udp", &net.UDPAddr{IP: at.addr.Addr().AsSlice()})
		return err
	})
	m.Cleanup(func() { l.server.Close() })
	at.in.Do(func() (err error) {
		l.client, err = net.DialUDP("udp", nil, l.server.LocalAddr().(*net.UDPAddr))
		return err
	})
	m.Cleanup(func() { l.client.Close() })
	return l
}

// Of a slow link's rate, TCP has what its headers leave: 20 bytes of IP's and 32 of its
// own in packets of 1500 bytes.
const tcpShare = (1500 - 52) / 1500.

// checkTCP returns how long a seat takes to connect, and how much it gets.
func (s *netnsStage) checkTCP(m *measurement, at *seat) []check {
	const (
		starting = time.Second // until the queue is full
		filling  = 2 * time.Second
	)
	at.Set(netem.Config{Delay: askedLossy.Delay})
	var listener net.Listener
	s.server.Do(func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(at.addr.Addr().String(), "0"))
		return err
	})
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for buf := make([]byte, 64<<10); err == nil; {
			_, err = c.Write(buf)
		}
	}()
	var c net.Conn
	var took time.Duration
	at.in.Do(func() (err error) {
		start := time.Now()
		c, err = net.DialTimeout("tcp", listener.Addr().String(), rig.Patience)
		took = time.Since(start)
		return err
	})
	defer c.Close()
	at.Set(askedSlow)
	buf := make([]byte, 64<<10)
	receive := func(d time.Duration) (bytes int) {
		for c.SetReadDeadline(time.Now().Add(d)); ; {
			n, err := c.Read(buf)
			bytes += n
			if err != nil {
				return bytes // the time is up
			}
		}
	}
	receive(starting)
	start := time.Now()
	got := receive(filling)
	rate := 8 * float64(got) / time.Since(start).Seconds() / 1e6
	return []check{
		{"tcp rtt", "ms", inMS(took), inMS(2 * askedLossy.Delay), 3},
		{"tcp rate", "Mbit/s", rate, tcpShare * float64(askedSlow.Rate) / 1e6, 0.1},
	}
}
