//go:build linux || darwin

package sim_test

import (
	"bytes"
	"context"
	"log/slog"
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
	"github.com/quicterm/quicterm/configs"
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
	// fail and repair are what happens to the network, again and again, and for how long, if that is not 0. A person
	// types meanwhile. What is measured is the time from the repair to the first echo.
	fail   func(w *sim.World, used int) // used is the interface that carries the session
	repair func(w *sim.World, link netem.Config)
	down   time.Duration
}

// A measurement is what a cell shows.
type measurement struct {
	p50, p99, worst time.Duration // from a key to its echo
	gap, worstGap   time.Duration // from a repair to the first echo
	bytes, packets  float64       // for each key, both ways
	cpu             time.Duration // for each key, of all processes and of the network between them
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

// measure types a number of keys in a cell.
func (c cell) measure(t *testing.T, keys int, configure func(*client.Config)) (m measurement) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w, err := sim.New(dir, c.link, 1, func(*wire.Launch) holder.Program {
			if c.floods {
				return flooder{programtest.NewEcho(true)}
			}
			return programtest.NewEcho(true)
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
		before, spent := len(out.times()), cpuTime()
		packets, bytes := w.Sent()
		var typed []time.Time
		if c.fail == nil {
			typed = c.typeKeys(s, keys)
		} else {
			typed = c.failures(w, s, out, keys, &m)
		}
		lastPackets, lastBytes := w.Sent()
		n := float64(len(typed))
		m.packets, m.bytes = float64(lastPackets-packets)/n, float64(lastBytes-bytes)/n
		m.cpu = (cpuTime() - spent) / time.Duration(len(typed))
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
		Settings:  configs.DefaultClient(),
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
func (c cell) failures(w *sim.World, s *client.Session, out *keyClock, keys int, m *measurement) (typed []time.Time) {
	var gaps []time.Duration
	for len(typed) < keys {
		idle := [2]uint64{w.Packets(0), w.Packets(1)}
		typed = append(typed, c.typeKeys(s, 20+len(gaps)%7)...)
		used := 0
		if w.Packets(1)-idle[1] > w.Packets(0)-idle[0] {
			used = 1
		}
		c.fail(w, used)
		failed := time.Now().Add(c.link.Delay) // echoes that were under way have arrived
		time.Sleep(c.link.Delay)
		typed = append(typed, c.typeKeys(s, int(c.down/pace))...)
		time.Sleep(time.Duration(len(gaps)) * 13 * time.Millisecond) // another phase of timers
		repaired := time.Now()
		if c.repair != nil {
			c.repair(w, c.link)
		} else {
			repaired = failed
		}
		typed = append(typed, c.typeKeys(s, 50)...)
		gap := time.Since(repaired)
		for _, at := range out.times() {
			if at.After(repaired) {
				gap = at.Sub(repaired)
				break
			}
		}
		gaps = append(gaps, gap)
		if c.repair == nil { // the other way round
			w.Set(0, c.link)
			w.Set(1, c.link)
			w.Tell(netmon.Changed)
			typed = append(typed, c.typeKeys(s, 100)...)
		}
	}
	slices.Sort(gaps)
	m.gap, m.worstGap = gaps[len(gaps)/2], gaps[len(gaps)-1]
	return typed
}

// echoes computes the times from the keys to their echoes.
func (m *measurement) echoes(t *testing.T, typed, echoed []time.Time) {
	t.Helper()
	if len(echoed) < len(typed) {
		t.Errorf("%d echoes of %d keys", len(echoed), len(typed))
		return
	}
	echoed = echoed[len(echoed)-len(typed):]
	var took []time.Duration
	for i, at := range typed {
		took = append(took, echoed[i].Sub(at))
	}
	slices.Sort(took)
	m.p50, m.p99, m.worst = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
}

// cpuTime returns how long this process has computed.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
