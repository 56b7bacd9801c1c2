//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

const (
	feelSessions = 20
	feelKeys     = 100                    // in each session
	feelPace     = 200 * time.Millisecond // from one key of a session to the next
	feelAttempts = 2                      // where the machine is busy

	// feelLearning is how many of the keys do not count for what typing costs,
	// only for how it feels: both ends measure the path, and quic-go looks for
	// larger packets on loopback.
	feelLearning = 20
)

// echoCommand is what the sessions run.
const echoCommand = "stty raw -echo; echo ready; cat"

// A typists is 20 sessions side by side, in each of which somebody types. It is
// measured once, for all rows that ask.
type typists struct {
	f      *feeling
	loss   float64 // each way
	limits limits  // of the echo

	redundant bool // over two such paths, in namespaces

	once  sync.Once
	typed *typed
}

// typed is what was measured of them.
type typed struct {
	times []time.Duration // sorted
	wire  float64         // bytes per second and session, both ways, with headers
	up    float64         // packets for each key
	down  float64
	stall time.Duration // the longest of this process

	resent, sent int // bytes, by the clients
}

// traffic is what was offered to links, lost or not, with headers.
type traffic struct{ bytes, up, down uint64 }

// limits are bounds in milliseconds, 0 for none.
type limits struct{ p50, p90, p99, max int }

func (l limits) kept(sorted []time.Duration) bool {
	within := func(d time.Duration, limit int) bool {
		return limit == 0 || d <= time.Duration(limit)*time.Millisecond
	}
	return within(percentile(sorted, 0.5), l.p50) && within(percentile(sorted, 0.9), l.p90) &&
		within(percentile(sorted, 0.99), l.p99) && within(sorted[len(sorted)-1], l.max)
}

// result measures unless it was done, until the limits are kept or the machine
// was not busy.
func (t *typists) result(m *measurement) *typed {
	t.once.Do(func() {
		for range feelAttempts {
			t.typed = t.measure(m)
			if t.typed.stall < believed || t.limits.kept(t.typed.times) {
				return
			}
		}
	})
	if t.typed == nil {
		m.Fatal("see the row before") // which shares the measurement
	}
	return t.typed
}

// echo is the measure of the time from keys to their echoes.
func (t *typists) echo(m *measurement) (string, bool) {
	r := t.result(m)
	return r.text(), t.limits.kept(r.times)
}

func (r *typed) text() string {
	p := func(share float64) int64 { return percentile(r.times, share).Milliseconds() }
	return fmt.Sprintf("p50 %d, p90 %d, p99 %d, max %d ms; stall %v", p(0.5), p(0.9), p(0.99), p(1), ms(r.stall))
}

// resends is the measure of what clients send again. What the server does is not
// counted anywhere.
func (t *typists) resends(m *measurement) (string, bool) {
	r := t.result(m)
	share := float64(r.resent) / float64(r.sent)
	return fmt.Sprintf("%.1f %% (%d of %d bytes of the clients)", 100*share, r.resent, r.sent), share <= 0.05
}

// wire returns a row's measure of what typing costs.
func (t *typists) wire(limit float64) func(m *measurement) (string, bool) {
	return func(m *measurement) (string, bool) {
		r := t.result(m)
		return fmt.Sprintf("%.0f B/s; packets a key: %.1f up, %.1f down", r.wire, r.up, r.down), r.wire <= limit
	}
}

func (t *typists) measure(m *measurement) *typed {
	if t.redundant {
		return t.measureRedundant(m)
	}
	h := m.host(manyClients)
	p := h.Proxy(netem.Config{Delay: feelRTT / 2, Loss: t.loss})
	connect := h.Via(p.Addr(), "connect", []string{"-t"}, echoCommand)
	keyboards := make([]*keyboard, feelSessions)
	for i := range keyboards {
		k := newKeyboard()
		k.x = rig.Watch(m, again(connect), k)
		keyboards[i] = k
	}
	return typeOn(m, t.f, keyboards, func() traffic {
		up, down := p.Counters()
		return traffic{up.Bytes + down.Bytes + udpHeaders*(up.Packets+down.Packets), up.Packets, down.Packets}
	})
}

// sentByClients returns how many bytes clients have sent again, and at all, as
// qt status says. (Each path's bytes are of QUIC packets.)
func sentByClients(m *measurement, keyboards []*keyboard) (resent, all int) {
	out, err := exec.Command(filepath.Join(m.bin, "qt"), "status", "--json").Output()
	if err != nil {
		m.Fatalf("qt status: %v", err)
	}
	var reports []struct {
		PID         int `json:"pid"`
		ResentBytes int `json:"resent_bytes"`
		Paths       []struct {
			Sent int `json:"sent_bytes"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(out, &reports); err != nil {
		m.Fatalf("qt status: %v", err)
	}
	clients := 0
	for _, r := range reports {
		if !slices.ContainsFunc(keyboards, func(k *keyboard) bool { return k.x.Cmd.Process.Pid == r.PID }) {
			continue
		}
		clients++
		resent += r.ResentBytes
		for _, p := range r.Paths {
			all += p.Sent
		}
	}
	if clients < len(keyboards) {
		m.Fatalf("qt status shows %d of %d clients", clients, len(keyboards))
	}
	return resent, all
}

// measureRedundant has clients with two interfaces, both of which lose packets.
func (t *typists) measureRedundant(m *measurement) *typed {
	n := newFeelNet(m)
	maps.Copy(n.host.Settings, manyClients)
	n.host.Start()
	connect := n.host.Via(n.host.Addr, "connect", []string{"-t", "--redundant"}, echoCommand)
	keyboards := make([]*keyboard, feelSessions)
	var ports []*netem.Port
	for i := range keyboards {
		ns, both := n.client(m, i, 2, netem.Config{Delay: feelRTT / 2, Loss: t.loss})
		ports = append(ports, both...)
		k := newKeyboard()
		k.x = rig.Watch(m, ns.In(again(connect)), k)
		keyboards[i] = k
	}
	return typeOn(m, t.f, keyboards, func() (sum traffic) {
		for _, p := range ports {
			up, down := p.Counters()
			sum.bytes += up.Bytes + down.Bytes // whole packets
			sum.up += up.Packets
			sum.down += down.Packets
		}
		return sum
	})
}

// typeOn types on all keyboards, and counts what that costs.
func typeOn(m *measurement, f *feeling, keyboards []*keyboard, sent func() traffic) *typed {
	for _, k := range keyboards {
		select {
		case <-k.ready:
		case <-k.x.Closed():
			m.Fatalf("a client ended: %q", k.shown())
		case <-time.After(rig.Patience):
			m.Fatal("a session does not begin")
		}
	}
	time.Sleep(settle)
	resentBefore, sentBefore := sentByClients(m, keyboards)
	stalls := watchStalls()
	start := time.Now()
	var before traffic
	for n := range feelKeys {
		if n == feelLearning {
			before = sent()
		}
		for i, k := range keyboards {
			at := time.Duration(n)*feelPace + time.Duration(i)*feelPace/time.Duration(len(keyboards))
			time.Sleep(time.Until(start.Add(at)))
			if err := k.key(); err != nil {
				m.Fatal(err)
			}
		}
	}
	time.Sleep(time.Until(start.Add(feelKeys * feelPace)))
	after, counted := sent(), feelKeys-feelLearning
	keys := float64(counted * len(keyboards))
	r := &typed{
		wire: float64(after.bytes-before.bytes) / (time.Duration(counted) * feelPace).Seconds() / float64(len(keyboards)),
		up:   float64(after.up-before.up) / keys,
		down: float64(after.down-before.down) / keys,
	}
	r.stall = stalls()
	until := time.Now().Add(rig.Patience)
	for i, k := range keyboards {
		times, err := k.await(until)
		if err != nil {
			m.Fatalf("session %d: %v", i, err)
		}
		if f.verbose {
			for n, d := range times {
				if d > 2*feelRTT {
					m.Logf("session %d, key %d: %v", i, n, ms(d))
				}
			}
		}
		r.times = append(r.times, times...)
	}
	resent, all := sentByClients(m, keyboards)
	r.resent, r.sent = resent-resentBefore, all-sentBefore
	slices.Sort(r.times)
	if f.verbose {
		m.Logf("%s; %.0f B/s; clients resent %d of %d bytes", r.text(), r.wire, r.resent, r.sent)
	}
	return r
}
