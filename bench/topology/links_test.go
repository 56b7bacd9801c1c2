//go:build linux

package topology

import (
	"encoding/binary"
	"math"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// The links of both topologies treat packets as they are asked to.
func TestLinks(t *testing.T) {
	for name, open := range map[string]func(t *measure.T) checkedLink{"proxy": proxied, "namespaces": routed} {
		t.Run(name, func(t *testing.T) {
			if err := CheckNamespaces(); err != nil && name == "namespaces" {
				t.Skip(err)
			}
			t.Parallel()
			const tries = 3 // what a link does is right if it once is: other programs disturb what measures it
			for n := 1; ; n++ {
				var wrong []check
				stalls := measure.WatchStalls()
				err := new(measure.Group).Run(t.Name(), "", func(m *measure.T) { wrong = open(m).check(m) })
				longest := stalls()
				busy := !slices.ContainsFunc(wrong, func(c check) bool { return longest < c.stall })
				switch {
				case err != nil:
					t.Fatal(err)
				case len(wrong) == 0:
					return
				case n == tries && busy:
					t.Skip("the machine is too busy to see what a link does")
				case n == tries:
					for _, c := range wrong {
						t.Errorf("%s: %.4g, want %.4g +- %.2g", c.what, c.got, c.asked, c.tolerance)
					}
					return
				}
			}
		})
	}
}

// A checkedLink is to be checked: two sockets, of which the client's is connected to the
// server's over the link.
type checkedLink struct {
	client, server *net.UDPConn
	set            func(netem.Config)
	tcp            func(t *measure.T) []check // checks TCP; nil if the link has none
}

// A check is one property of a link.
type check struct {
	what                  string
	got, asked, tolerance float64
	stall                 time.Duration // with one as long, it is not believed
}

// proxied returns a link through a proxy.
func proxied(t *measure.T) checkedLink {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	p, err := netem.NewProxy(server.LocalAddr().(*net.UDPAddr).AddrPort(), netem.Config{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	client, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(p.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return checkedLink{client: client, server: server, set: p.Set}
}

// routed returns a link between two namespaces.
func routed(t *measure.T) checkedLink {
	n := NewNamespaces(t, Options{Seed: 1})
	m := n.Machine(t, 0, netem.Config{})
	l := checkedLink{set: m.Set}
	l.tcp = func(t *measure.T) []check { return checkTCP(t, n.Server, m) }
	l.server = rig.Inside(n.Server, func() (*net.UDPConn, error) {
		return net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ServerIP)})
	})
	t.Cleanup(func() { l.server.Close() })
	l.client = rig.Inside(m.Namespace, func() (*net.UDPConn, error) {
		return net.DialUDP("udp", nil, l.server.LocalAddr().(*net.UDPAddr))
	})
	t.Cleanup(func() { l.client.Close() })
	return l
}

// What a link is asked to do. Bursts are short, so that there are many. All together take
// 9 s.
var (
	askedLossy = netem.Config{Delay: 50 * time.Millisecond, Loss: 0.29}
	askedBurst = netem.Config{Burst: netem.Burst{Mean: 5 * time.Millisecond, Share: 0.2}}
	askedSlow  = netem.Config{Rate: 2_000_000, Queue: 256 << 10}
)

// check measures the link, and returns what it does otherwise than asked.
func (l checkedLink) check(t *measure.T) (wrong []check) {
	rtt, up, down := l.lossy(t)
	share, length := l.bursts(t)
	rate, queue := l.slow(t)
	asked := askedBurst.Burst
	checks := []check{
		{"rtt, ms", measure.Milliseconds(rtt), measure.Milliseconds(2 * askedLossy.Delay), 3, measure.MaxStall},
		{"loss up, %", 100 * up, 100 * askedLossy.Loss, 5, measure.MaxStall},
		{"loss down, %", 100 * down, 100 * askedLossy.Loss, 5, measure.MaxStall},
		{"bursts, %", 100 * share, 100 * asked.Share, 7, measure.MaxStall},
		{"burst, ms", measure.Milliseconds(length), measure.Milliseconds(asked.Mean), 2, asked.Mean},
		{"rate, Mbit/s", rate / 1e6, float64(askedSlow.Rate) / 1e6, 0.1, measure.MaxStall},
		{"queue, KiB", queue / 1024, float64(askedSlow.Queue) / 1024, 13, measure.MaxStall},
	}
	if l.tcp != nil {
		checks = append(checks, l.tcp(t)...)
	}
	for _, c := range checks {
		if math.Abs(c.got-c.asked) > c.tolerance {
			wrong = append(wrong, c)
		}
	}
	return wrong
}

// A packet arrived.
type packet struct {
	number int
	size   int
	sent   time.Duration // since the first was sent
	at     time.Duration
}

// stream sends packets over the link at a pace, and returns which arrived at the server
// and, if that echoes them, back at the client, until a time after the last.
func (l checkedLink) stream(t *measure.T, packets, size int, pace, late time.Duration, echo bool) (there,
	here []packet) {
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
		t.Fatal("nothing arrives")
	}
	return there, here
}

func (l checkedLink) lossy(t *measure.T) (rtt time.Duration, up, down float64) {
	const packets = 1500
	l.set(askedLossy)
	there, here := l.stream(t, packets, 100, 2*time.Millisecond, 200*time.Millisecond, true)
	var times []time.Duration
	for _, p := range here {
		times = append(times, p.at-p.sent)
	}
	slices.Sort(times)
	return times[len(times)/2], 1 - float64(len(there))/packets, 1 - float64(len(here))/float64(len(there))
}

func (l checkedLink) bursts(t *measure.T) (share float64, length time.Duration) {
	const (
		packets = 4000
		pace    = time.Millisecond
	)
	l.set(askedBurst)
	there, _ := l.stream(t, packets, 100, pace, 100*time.Millisecond, false)
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

// slow fills the queue faster than it empties, and then measures how fast that is.
func (l checkedLink) slow(t *measure.T) (rate, queue float64) {
	const (
		size = 1000
		pace = 200 * time.Microsecond
	)
	packets := 2 * askedSlow.Queue / size
	l.set(askedSlow)
	there, _ := l.stream(t, packets, size, pace, 1500*time.Millisecond, false)
	first, last := there[0], there[len(there)-1]
	rate = 8 * float64(size*(len(there)-1)) / (last.at - first.at).Seconds()
	// The packet that took longest found the queue full: what waited was ahead of it.
	longest := time.Duration(0)
	for _, p := range there {
		longest = max(longest, p.at-p.sent)
	}
	return rate, longest.Seconds() * float64(askedSlow.Rate) / 8
}

// tcpShare is what TCP's headers leave it of a slow link's rate: of packets of 1500 bytes
// 20 are IP's and 32 its own.
const tcpShare = (1500 - 52) / 1500.

// checkTCP measures how long a machine takes to connect, and its rate.
func checkTCP(t *measure.T, server *rig.Namespace, m *Machine) []check {
	const (
		filling   = time.Second // until the queue is full
		measuring = 2 * time.Second
	)
	m.Set(netem.Config{Delay: askedLossy.Delay})
	listener := rig.Inside(server, func() (net.Listener,
		error) {
		return net.Listen("tcp", net.JoinHostPort(ServerIP, "0"))
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
	var took time.Duration
	c := rig.Inside(m.Namespace, func() (net.Conn, error) {
		start := time.Now()
		defer func() { took = time.Since(start) }()
		return net.DialTimeout("tcp", listener.Addr().String(), rig.Patience)
	})
	defer c.Close()
	m.Set(askedSlow)
	buf := make([]byte, 64<<10)
	receive := func(d time.Duration) (bytes int) {
		for c.SetReadDeadline(time.Now().Add(d)); ; {
			n, err := c.Read(buf)
			bytes += n
			if err != nil {
				return bytes // the deadline has passed
			}
		}
	}
	receive(filling)
	start := time.Now()
	rate := 8 * float64(receive(measuring)) / time.Since(start).Seconds() / 1e6
	return []check{
		{"tcp rtt, ms", measure.Milliseconds(took), measure.Milliseconds(2 * askedLossy.Delay), 3, measure.MaxStall},
		{"tcp rate, Mbit/s", rate, tcpShare * float64(askedSlow.Rate) / 1e6, 0.1, measure.MaxStall},
	}
}
