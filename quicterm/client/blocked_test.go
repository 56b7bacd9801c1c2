//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"errors"
	mrand "math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// timeAttach attaches and returns how long that took.
func (w *world) timeAttach(streams Streams) (*Session, time.Duration) {
	begun := time.Now()
	s := w.attach(streams)
	return s, time.Since(begun)
}

// Where UDP is blocked, a login takes little longer, and next to nothing if that is known.
func TestLoginUDPBlocked(t *testing.T) {
	direct := time.Duration(0)
	for _, test := range []struct {
		blocked, known bool
		longer         time.Duration
	}{{false, false, 0}, {false, true, 0}, {true, false, 500 * time.Millisecond}, {true, true, 100 * time.Millisecond}} {
		inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
			w.noUDP = test.blocked
			w.config = func(cfg *Config) { cfg.TCPFirst = test.known }
			s, took := w.timeAttach(Streams{})
			if direct == 0 {
				direct = took
			}
			t.Logf("blocked %v, known %v: attached over %v in %v", test.blocked, test.known, s.first.transport, took)
			if took > direct+test.longer || (s.first.transport == migrate.TCP) != test.blocked {
				t.Errorf("want at most %v more than %v, and TCP only if UDP is blocked", test.longer, direct)
			}
			s.Leave()
			s.Run(context.Background())
			time.Sleep(time.Second)
			if n := w.net.Sockets() + w.net.Streams(); n != 1 {
				t.Errorf("%d sockets and %d ends of streams are open, want the server's", w.net.Sockets(), w.net.Streams())
			}
			w.program.Signal(0)
		})
	}
}

// UDP is blocked at any moment of a login: there is one session, on which the client is. A login
// by a token, which is used up then, has to be asked for again.
func TestUDPBlockedDuringLogin(t *testing.T) {
	for after := time.Duration(0); after < 3*trip; after += 10 * time.Millisecond {
		inWorld(t, netem.Config{Delay: trip / 2}, false, func(w *world) {
			w.kept.Go(func() {
				time.Sleep(after)
				w.block(true)
			})
			var out bytes.Buffer
			begun := time.Now()
			req := &wire.Attach{Mode: wire.ModeCreate}
			s, err := w.tryAttach(req, Streams{Stdout: &out})
			if brokenOff := new(BrokenOffError); errors.As(err, &brokenOff) {
				s, err = w.tryAttach(req, Streams{Stdout: &out})
			}
			if err != nil {
				t.Errorf("blocked after %v: %v", after, err)
				return
			}
			if took := time.Since(begun); took > 8*time.Second {
				t.Errorf("blocked after %v: attached after %v", after, took)
			}
			w.kept.Go(func() {
				s.Write([]byte("typed"))
				s.CloseWrite()
			})
			if status, err := s.Run(context.Background()); status != 7 || err != nil || out.String() != "typed" {
				t.Errorf("blocked after %v: status %d, %v, output %q", after, status, err, out.String())
			}
			if n := len(w.holders.Sessions(0)); n > 1 {
				t.Errorf("blocked after %v: %d sessions", after, n)
			}
		})
	}
}

// A session that is typed into goes down to TCP when UDP is blocked, and up when it is free.
func TestUDPBlockedWhileTyping(t *testing.T) {
	inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
		out := new(echoClock)
		s := w.attach(Streams{Stdout: out})
		w.kept.Go(func() {
			typeKeys(t, s, out, 50, 50*time.Millisecond, trip+10*time.Millisecond)
			for range 3 {
				w.block(true)
				typeKeys(t, s, out, 30, 50*time.Millisecond, 1500*time.Millisecond)
				wantTransport(t, "UDP is blocked", s, migrate.TCP)
				typeKeys(t, s, out, 1000, 50*time.Millisecond, trip+10*time.Millisecond)

				time.Sleep(20 * time.Minute)
				wantTransport(t, "much later", s, migrate.TCP)
				w.block(false)
				w.tell(netmon.Changed)
				typeKeys(t, s, out, 50, 20*time.Millisecond, trip+20*time.Millisecond)
				wantTransport(t, "UDP is free, and an event came", s, migrate.QUIC)

				w.block(true)
				typeKeys(t, s, out, 30, 50*time.Millisecond, 1500*time.Millisecond)
				time.Sleep(20 * time.Minute)
				w.block(false)
				for free := time.Now(); inUse(s)[0] != migrate.QUIC; {
					typeKeys(t, s, out, 1, time.Second, trip+20*time.Millisecond)
					if time.Since(free) > 5*time.Minute {
						t.Fatal("still on TCP after five minutes")
					}
				}
			}
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
		if n := w.net.Sockets() + w.net.Streams(); n != 1 {
			t.Errorf("%d sockets are open, want the server's", n)
		}
	})
}

// A client on TCP roams too.
func TestRoamOnTCP(t *testing.T) {
	inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
		w.noUDP = true
		out := new(echoClock)
		s := w.attach(Streams{Stdout: out})
		w.kept.Go(func() {
			typeKeys(t, s, out, 10, 50*time.Millisecond, trip+10*time.Millisecond)
			w.move(0)
			w.tell(netmon.Changed)
			typeKeys(t, s, out, 30, 50*time.Millisecond, time.Second)
			w.plug(0, false)
			w.tell(netmon.Changed)
			typeKeys(t, s, out, 30, 50*time.Millisecond, time.Second)
			w.setPort(1, netem.Config{Down: true}) // no event
			time.Sleep(10 * time.Second)
			w.setPort(1, netem.Config{Delay: trip / 2})
			typeKeys(t, s, out, 30, 50*time.Millisecond, 2*time.Second)
			typeKeys(t, s, out, 30, 50*time.Millisecond, trip+10*time.Millisecond)
			w.stop()
			w.serve()
			typeKeys(t, s, out, 30, 50*time.Millisecond, time.Second)
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
	})
}

// Whatever is blocked and when, all bytes of a flood each way arrive once.
func TestFloodWhileUDPIsBlocked(t *testing.T) {
	for seed := range uint64(4) {
		inWorld(t, netem.Config{Delay: 20 * time.Millisecond, Rate: 10e6}, false, func(w *world) {
			rng := mrand.New(mrand.NewPCG(seed, 0))
			if seed%2 == 0 {
				w.config = w.overTunnel
			}
			in := make([]byte, 4<<20)
			for i := range in {
				in[i] = byte(rng.Uint32())
			}
			var out bytes.Buffer
			s := w.attach(Streams{Stdout: &out})
			done := make(chan struct{})
			w.kept.Go(func() {
				s.Write(in)
				s.CloseWrite()
				<-done
			})
			w.kept.Go(func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(time.Duration(rng.Int64N(int64(4 * time.Second)))):
					}
					w.net.Do(func() {
						w.noUDP = rng.IntN(2) == 0
						w.noTCP = w.noUDP && rng.IntN(4) == 0
					})
					if rng.IntN(2) == 0 {
						w.tell(netmon.Changed)
					}
				}
			})
			status, err := s.Run(context.Background())
			close(done)
			if status != 7 || err != nil || !bytes.Equal(out.Bytes(), in) {
				t.Errorf("seed %d: status %d, %v, %d bytes came back, not the %d that were sent", seed, status, err, out.Len(), len(in))
			}
		})
	}
}

// A key is not stuck behind a flood that goes over TCP on a slow path, whether it goes there too or not.
func TestKeyBehindFloodOnTCP(t *testing.T) {
	for _, noUDP := range []bool{true, false} {
		testKeyBehindFlood(t, noUDP)
	}
}

func testKeyBehindFlood(t *testing.T, noUDP bool) {
	inWorld(t, netem.Config{Delay: trip / 2, Rate: 1e6}, true, func(w *world) {
		w.noUDP, w.compression, w.floods = noUDP, "off", true
		var echoed atomic.Int64 // Unix nanoseconds
		s := w.attach(Streams{Stdout: writerFunc(func(b []byte) (int, error) {
			if bytes.IndexByte(b, 'C') >= 0 {
				echoed.Store(time.Now().UnixNano())
			}
			return len(b), nil
		})})
		w.kept.Go(func() {
			time.Sleep(10 * time.Second)
			most := 2*trip + 150*time.Millisecond
			if !noUDP {
				most += 100 * time.Millisecond // while a second carrier for bulk data is tried
			}
			var all []time.Duration
			for range 20 {
				typed := time.Now()
				s.Write([]byte("C"))
				time.Sleep(2 * time.Second)
				took := time.Unix(0, echoed.Load()).Sub(typed)
				if all = append(all, took); took < 0 || took > most {
					t.Errorf("UDP blocked %v: the key came back after %v", noUDP, took)
				}
			}
			slices.Sort(all)
			if median := all[len(all)/2]; median > 2*trip+50*time.Millisecond {
				t.Errorf("UDP blocked %v: half of the keys come back after %v or later", noUDP, median)
			}
			if noUDP {
				wantTransport(t, "UDP is blocked", s, migrate.TCP)
			} else if w.net.Streams() == 0 {
				t.Error("nothing is sent over TCP")
			}
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
	})
}

// A flooder is a program that prints without end, and what it reads. ^D ends it.
type flooder struct{ *programtest.Echo }

func (f flooder) Wait() (status byte, killed syscall.Signal) {
	keys := make(chan byte)
	go func() {
		defer close(keys)
		b := make([]byte, 1)
		for b[0] != 4 {
			if _, err := f.In.Read(b); err != nil {
				return
			}
			keys <- b[0]
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
			f.Out.Write([]byte{b})
		case <-time.After(time.Millisecond):
			f.Out.Write(line)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
