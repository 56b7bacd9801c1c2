//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/result"
)

// A testLink is a link to be measured: two sockets, of which the client's is connected to
// the server's over it, and how it is told what to do.
type testLink struct {
	client, server *net.UDPConn
	set            func(netem.Config)
	tcp            func(m *measurement) []check // what it does to TCP, or nil
}

// proxyTestLink is a link through a proxy.
func proxyTestLink(m *measurement, seed uint64) testLink {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { server.Close() })
	p, err := netem.NewProxy(server.LocalAddr().(*net.UDPAddr).AddrPort(), netem.Config{}, seed)
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { p.Close() })
	client, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(p.Addr()))
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { client.Close() })
	return testLink{client: client, server: server, set: p.Set}
}

// What a link is asked to do when it is measured. Bursts are short, so that there are
// many, and the time of all is 9 s.
var (
	askedLossy = netem.Config{Delay: feelRTT / 2, Loss: 0.29}
	askedBurst = netem.Config{Burst: netem.Burst{Mean: 5 * time.Millisecond, Share: 0.2}}
	askedSlow  = netem.Config{Rate: 2_000_000, Queue: 256 << 10}
)

// emulatedLink is the scenario of the records of checkEmulator. Their program is what
// emulates.
const emulatedLink = "emulated link"

// checkEmulator measures a link, and compares how it treats packets with what it was
// asked to do.
func (p *player) checkEmulator(name string, open func(m *measurement, seed uint64) testLink) []result.Record {
	return p.believable(func(repeats int) ([]result.Record, time.Duration) {
		stalls := watchStalls()
		var checks []check
		err := p.all.run("emulated link, "+name, p.bin, func(m *measurement) { checks = open(m, p.seed).measure(m) })
		stall := stalls()
		record := result.Record{
			Time: p.now(), Commit: p.commit, Machine: p.machine, Scenario: emulatedLink, Program: name,
			Portable: true, StallMS: inMS(stall), Repeats: repeats, Seed: p.seed,
		}
		if err != nil {
			record.Metric, record.Verdict, record.Why = "complete", result.Failed, oneLine(err)
			return []result.Record{record}, stall
		}
		var records []result.Record
		for _, c := range checks {
			r := record
			r.Metric, r.Unit, r.Values = c.what, c.unit, []float64{c.got}
			r.Bound, r.Verdict = fmt.Sprintf("%.4g +- %.2g", c.asked, c.tolerance), result.OK
			if math.Abs(c.got-c.asked) > c.tolerance {
				r.Verdict = result.Missed
			}
			records = append(records, r)
		}
		return records, stall
	})
}

// A check is what a link did.
type check struct {
	what, unit            string
	got, asked, tolerance float64
}

// measure returns what the link does.
func (l testLink) measure(m *measurement) []check {
	rtt, up, down := l.lossy(m)
	share, length := l.bursts(m)
	rate, queue := l.slow(m)
	asked := askedBurst.Burst
	checks := []check{
		{"rtt", "ms", inMS(rtt), inMS(2 * askedLossy.Delay), 3},
		{"loss up", "%", 100 * up, 100 * askedLossy.Loss, 5},
		{"loss down", "%", 100 * down, 100 * askedLossy.Loss, 5},
		{"bursts", "%", 100 * share, 100 * asked.Share, 7},
		{"burst", "ms", inMS(length), inMS(asked.Mean), 2},
		{"rate", "Mbit/s", rate / 1e6, float64(askedSlow.Rate) / 1e6, 0.1},
		{"queue", "KiB", queue / 1024, float64(askedSlow.Queue) / 1024, 13},
	}
	if l.tcp != nil {
		checks = append(checks, l.tcp(m)...)
	}
	return checks
}

// A packet that arrived.
type packet struct {
	number int
	size   int
	sent   time.Duration // since the first was sent
	at     time.Duration
}

// stream sends packets over the link at a pace, has the server send back those that
// arrive there if it is to, and returns which arrived where within a time after the last.
func (l testLink) stream(m *measurement, packets, size int, pace, late time.Duration, echo bool) (there, here []packet) {
	start := time.Now()
	until := start.Add(time.Duration(packets)*pace + late)
	receive := func(c *net.UDPConn, to *[]packet, arrived func(b []byte, from net.Addr)) {
		buf := make([]byte, 2048)
		for c.SetReadDeadline(until); ; {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return // the time is up
			}
			if n < 16 {
				continue
			}
			*to = append(*to, packet{
				int(binary.BigEndian.Uint64(buf)), n,
				time.Duration(binary.BigEndian.Uint64(buf[8:])), time.Since(start),
			})
			arrived(buf[:n], from)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		receive(l.server, &there, func(b []byte, from net.Addr) {
			if echo {
				l.server.WriteTo(b, from)
			}
		})
	})
	wg.Go(func() { receive(l.client, &here, func([]byte, net.Addr) {}) })
	buf := make([]byte, size)
	for n := range packets {
		time.Sleep(time.Until(start.Add(time.Duration(n) * pace)))
		binary.BigEndian.PutUint64(buf, uint64(n))
		binary.BigEndian.PutUint64(buf[8:], uint64(time.Since(start)))
		l.client.Write(buf)
	}
	wg.Wait()
	if len(there) == 0 || echo && len(here) == 0 {
		m.Fatal("nothing arrives")
	}
	return there, here
}

func (l testLink) lossy(m *measurement) (rtt time.Duration, up, down float64) {
	const packets = 1500
	l.set(askedLossy)
	there, here := l.stream(m, packets, 100, 2*time.Millisecond, 200*time.Millisecond, true)
	var times []time.Duration
	for _, p := range here {
		times = append(times, p.at-p.sent)
	}
	slices.Sort(times)
	return percentile(times, 0.5), 1 - float64(len(there))/packets, 1 - float64(len(here))/float64(len(there))
}

func (l testLink) bursts(m *measurement) (share float64, length time.Duration) {
	const (
		packets = 4000
		pace    = time.Millisecond
	)
	l.set(askedBurst)
	there, _ := l.stream(m, packets, 100, pace, 100*time.Millisecond, false)
	arrived := make([]bool, packets)
	for _, p := range there {
		arrived[p.number] = true
	}
	lost, bursts := 0, 0
	for n := range arrived {
		if !arrived[n] {
			lost++
			if n == 0 || arrived[n-1] {
				bursts++
			}
		}
	}
	return float64(lost) / packets, time.Duration(lost) * pace / time.Duration(max(bursts, 1))
}

// slow fills the queue faster than it empties, and looks at how long that takes then.
func (l testLink) slow(m *measurement) (rate, queue float64) {
	const (
		size = 1000
		pace = 200 * time.Microsecond
	)
	packets := 2 * askedSlow.Queue / size
	l.set(askedSlow)
	there, _ := l.stream(m, packets, size, pace, 1500*time.Millisecond, false)
	first, last := there[0], there[len(there)-1]
	rate = 8 * float64(size*(len(there)-1)) / (last.at - first.at).Seconds()
	// What waited when the queue was full first is what was ahead of the packet that
	// took longest.
	longest := time.Duration(0)
	for _, p := range there {
		longest = max(longest, p.at-p.sent)
	}
	return rate, longest.Seconds() * float64(askedSlow.Rate) / 8
}

// inMS returns a duration in milliseconds.
func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
