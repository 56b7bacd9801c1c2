//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	trip = 100 * time.Millisecond // of the base network
	pace = 200 * time.Millisecond // from one key to the next
	warm = 50                     // keys before what is measured
)

// A cell is a network in which a person types.
type cell struct {
	name   string
	link   netem.Config
	floods bool
	later  *netem.Config // what the links do after the first keys, or nil
	prints int           // bytes that the program prints before each echo
	// fail and repair are what happens to the network, again and again, and for how long, if that is not 0. A person
	// types meanwhile. What is measured is the time from the repair to the first echo.
	fail   func(w *world, used int) // used is the interface that carries the session
	repair func(w *world, link netem.Config)
	down   time.Duration
}

// A measurement is what a cell shows.
type measurement struct {
	took           []time.Duration // from a key to its echo
	gaps           []time.Duration // from a repair to the first echo
	caught         []time.Duration // from a repair to the echo of the last key before it
	keys           int
	bytes, packets uint64        // both ways
	cpu            time.Duration // of all processes and of the network between them
}

func (m *measurement) add(other measurement) {
	m.took, m.gaps = append(m.took, other.took...), append(m.gaps, other.gaps...)
	slices.Sort(m.took)
	m.caught = append(m.caught, other.caught...)
	slices.Sort(m.gaps)
	slices.Sort(m.caught)
	m.keys += other.keys
	m.bytes += other.bytes
	m.packets += other.packets
	m.cpu += other.cpu
}

// at returns a quantile of sorted times, or 0 if there are none.
func at(sorted []time.Duration, quantile float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(quantile*float64(len(sorted)-1))]
}

// A keyClock records when each k arrived.
type keyClock struct {
	mu sync.Mutex
	at []time.Time
}

func (k *keyClock) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for range bytes.Count(b, []byte("k")) {
		k.at = append(k.at, time.Now())
	}
	return len(b), nil
}

func (k *keyClock) times() []time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.at)
}

// A flooder is a program that prints without end, and what it reads. ^D ends it.
type flooder struct{ *programtest.Echo }

func (f flooder) Wait() (status byte, killed syscall.Signal) {
	keys := make(chan []byte)
	go func() {
		defer close(keys)
		for {
			b := make([]byte, 100)
			n, err := f.In.Read(b)
			if err != nil || bytes.IndexByte(b[:n], 4) >= 0 {
				return
			}
			keys <- b[:n]
		}
	}()
	line := bytes.Repeat([]byte("x"), 4096)
	for {
		select {
		case b, ok := <-keys:
			if !ok {
				f.Out.Close()
				return programtest.Status, 0
			}
			f.Out.Write(b)
		default:
			f.Out.Write(line)
		}
	}
}

// A printer is a program that prints something before what it reads.
type printer struct {
	*programtest.Echo
	rng   *rand.Rand
	bytes int
}

func (p printer) Wait() (status byte, killed syscall.Signal) {
	b := make([]byte, 100)
	for {
		n, err := p.In.Read(b)
		if err != nil || bytes.IndexByte(b[:n], 4) >= 0 {
			p.Out.Close()
			return programtest.Status, 0
		}
		for _, key := range b[:n] {
			p.Out.Write(append(noise(p.rng, p.bytes), key))
		}
	}
}

// measure types a number of keys in a cell, in some runs with losses of their own.
func (c cell) measure(t *testing.T, runs, keys int, configure func(*client.Config)) measurement {
	t.Helper()
	var all measurement
	for seed := range runs {
		all.add(c.run(t, uint64(seed), keys/runs, configure))
	}
	return all
}

// run is one run of measure.
func (c cell) run(t *testing.T, seed uint64, keys int, configure func(*client.Config)) (m measurement) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed, dir)
		w.newMachine("m", c.link, c.link)
		w.program = func(*wire.Launch) holder.Program {
			if c.floods {
				return flooder{programtest.NewEcho(true)}
			}
			return printer{programtest.NewEcho(true), rand.New(rand.NewPCG(seed, 0)), c.prints}
		}
		w.startDaemon()
		defer w.end()
		out := new(keyClock)
		s, err := attach(w, out, configure)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(context.Background())
		}()
		c.typeKeys(s, warm)
		if c.later != nil {
			w.set(0, *c.later)
			w.set(1, *c.later)
		}
		before, spent := len(out.times()), cpuTime()
		packets, bytes := w.sent()
		var typed []time.Time
		if c.fail == nil {
			typed = c.typeKeys(s, keys)
		} else {
			typed = c.failures(w, s, out, keys, seed, &m)
		}
		lastPackets, lastBytes := w.sent()
		m.keys, m.packets, m.bytes, m.cpu = len(typed), lastPackets-packets, lastBytes-bytes, cpuTime()-spent
		time.Sleep(30 * time.Second)
		m.echoes(t, typed, out.times()[min(before, len(out.times())):])
		w.host.holders.Kill()
		<-ended
	})
	return m
}

// set changes the links of an interface.
func (w *world) set(number int, link netem.Config) {
	p := w.machines[0].ports[number]
	w.net.Do(func() {
		p.base = link
		p.settle()
	})
}

// ipAndUDP is how many bytes of headers netem does not count.
const ipAndUDP = 28

// sent returns the number of packets and bytes that both ends have sent, with IP and UDP.
func (w *world) sent() (packets, bytes uint64) {
	w.net.Do(func() {
		for _, p := range w.machines[0].ports {
			up, down := p.to.Counters(), p.from.Counters()
			packets += up.Packets + down.Packets
			bytes += up.Bytes + down.Bytes
		}
	})
	return packets, bytes + ipAndUDP*packets
}

// packets returns how many packets the client has sent over an interface.
func (w *world) packets(number int) (n uint64) {
	w.net.Do(func() { n = w.machines[0].ports[number].to.Counters().Packets })
	return n
}

// plug takes all interfaces up or down.
func (w *world) plug(up bool) {
	w.net.Do(func() {
		for _, p := range w.machines[0].ports {
			p.gone = !up
		}
	})
	w.machines[0].tell(netmon.Changed)
}

// end ends a world whose sessions are over.
func (w *world) end() {
	w.host.close()
	w.host.holders.Wait()
	w.net.Close()
}

func attach(w *world, out *keyClock, configure func(*client.Config)) (*client.Session, error) {
	cfg := client.Config{
		Log:       slog.New(slog.DiscardHandler),
		Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{serverAddrs[0]}, nil },
		Network:   w.machines[0].newProcess(),
		CheckHost: func(ssh.PublicKey) error { return nil },
		Token:     client.Once(w.host.token()),
	}
	if configure != nil {
		configure(&cfg)
	}
	request := &wire.Attach{Session: "cell", PTY: true}
	return client.New(cfg).Attach(context.Background(), request, client.Streams{Stdout: out})
}

// typeKeys types keys and returns when.
func (c cell) typeKeys(s *client.Session, keys int) (typed []time.Time) {
	for range keys {
		typed = append(typed, time.Now())
		s.Write([]byte("k"))
		time.Sleep(pace)
	}
	return typed
}

// failures lets the network fail and types all the while, at least a number of keys.
func (c cell) failures(w *world, s *client.Session, out *keyClock, keys int, seed uint64, m *measurement) (typed []time.Time) {
	for len(typed) < keys {
		idle := [2]uint64{w.packets(0), w.packets(1)}
		typed = append(typed, c.typeKeys(s, 20+len(m.gaps)%7)...)
		used := 0
		if w.packets(1)-idle[1] > w.packets(0)-idle[0] {
			used = 1
		}
		c.fail(w, used)
		failed := time.Now().Add(c.link.Delay) // echoes that were under way have arrived
		time.Sleep(c.link.Delay)
		typed = append(typed, c.typeKeys(s, int(c.down/pace))...)
		time.Sleep(time.Duration(len(m.gaps)+int(5*seed)) * 13 * time.Millisecond) // another phase of timers
		repaired, before := time.Now(), warm+len(typed)
		if c.repair != nil {
			c.repair(w, c.link)
		} else {
			repaired = failed
		}
		typed = append(typed, c.typeKeys(s, 50)...)
		first := slices.IndexFunc(out.times(), repaired.Before)
		m.gaps = append(m.gaps, since(repaired, out, first))
		m.caught = append(m.caught, since(repaired, out, before-1))
		if c.repair == nil { // the other way round
			w.set(0, c.link)
			w.set(1, c.link)
			w.machines[0].tell(netmon.Changed)
			typed = append(typed, c.typeKeys(s, 100)...)
		}
	}
	return typed
}

// since returns how long after a time an echo came.
func since(begun time.Time, out *keyClock, echo int) time.Duration {
	if times := out.times(); echo >= 0 && echo < len(times) {
		return max(0, times[echo].Sub(begun))
	}
	return time.Since(begun) // not yet
}

// echoes computes the times from the keys to their echoes.
func (m *measurement) echoes(t *testing.T, typed, echoed []time.Time) {
	t.Helper()
	if len(echoed) < len(typed) {
		t.Errorf("%d echoes of %d keys", len(echoed), len(typed))
		return
	}
	echoed = echoed[len(echoed)-len(typed):]
	for i, at := range typed {
		m.took = append(m.took, echoed[i].Sub(at))
	}
}

// cpuTime returns how long this process has computed.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
