//go:build linux || darwin

package sim_test

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
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
	"github.com/quicterm/quicterm/quicterm/sim"
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
	fail   func(w *sim.World, used int) // used is the interface that carries the session
	repair func(w *sim.World, link netem.Config)
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
			p.Out.Write(append(noise(p.bytes), key))
		}
	}
}

// noise returns bytes that are hard to compress, without a k.
func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789ABCDEF"[rand.IntN(16)]
	}
	return b
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
		w, err := sim.New(dir, c.link, seed, func(*wire.Launch) holder.Program {
			if c.floods {
				return flooder{programtest.NewEcho(true)}
			}
			return printer{programtest.NewEcho(true), c.prints}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
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
			w.Set(0, *c.later)
			w.Set(1, *c.later)
		}
		before, spent := len(out.times()), cpuTime()
		packets, bytes := w.Sent()
		var typed []time.Time
		if c.fail == nil {
			typed = c.typeKeys(s, keys)
		} else {
			typed = c.failures(w, s, out, keys, seed, &m)
		}
		lastPackets, lastBytes := w.Sent()
		m.keys, m.packets, m.bytes, m.cpu = len(typed), lastPackets-packets, lastBytes-bytes, cpuTime()-spent
		time.Sleep(30 * time.Second)
		m.echoes(t, typed, out.times()[min(before, len(out.times())):])
		w.Holders.Kill()
		<-ended
	})
	return m
}

func attach(w *sim.World, out *keyClock, configure func(*client.Config)) (*client.Session, error) {
	token, err := w.Server.IssueToken(uint32(os.Geteuid()))
	if err != nil {
		return nil, err
	}
	cfg := client.Config{
		Log:       slog.New(slog.DiscardHandler),
		Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{sim.ServerAddr}, nil },
		Network:   w,
		CheckHost: func(ssh.PublicKey) error { return nil },
		Token:     token,
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
func (c cell) failures(w *sim.World, s *client.Session, out *keyClock, keys int, seed uint64, m *measurement) (typed []time.Time) {
	for len(typed) < keys {
		idle := [2]uint64{w.Packets(0), w.Packets(1)}
		typed = append(typed, c.typeKeys(s, 20+len(m.gaps)%7)...)
		used := 0
		if w.Packets(1)-idle[1] > w.Packets(0)-idle[0] {
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
			w.Set(0, c.link)
			w.Set(1, c.link)
			w.Tell(netmon.Changed)
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
