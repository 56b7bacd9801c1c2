package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	hostileConns = 280

	// accountConns is how many connections an account may have: two for each of 100
	// sessions, and 64 more.
	accountConns = 264

	// accountMemory is what an account may cost the daemon at most, in bytes.
	accountMemory = 64 << 20
)

// An account that fills its directory with sockets whose holders send all they can, asks
// for listings without end, and opens connections without end on which it sends as much as
// it may, costs the daemon bounded memory. Its own shell still works.
func TestHostileAccount(t *testing.T) {
	fakeSockets, hostileLists := 400, 8 // connections that ask for listings without end
	if raceEnabled {                    // memory is not measured
		fakeSockets, hostileLists = 8, 1
	}
	h := newHostAlone(t)
	h.Settings["max_unauthenticated"] = "2000"
	h.Start()
	x := h.Shell(h.Addr, "-s", "honest")
	memory := func() (sum int) {
		for pid := range map[int]bool{h.Daemon.Process.Pid: true, h.Network(): true} {
			one, _ := usage(t, pid)
			sum += one
		}
		return sum
	}
	before := memory()
	var answered atomic.Int64
	for i := range fakeSockets {
		fakeHolder(t, h, wire.SessionID{0xfa, 0xfe, byte(i), byte(i >> 8)}, &answered)
	}
	var lists sync.WaitGroup
	stop := make(chan struct{})
	listed := make(chan struct{}, 1000)
	for range hostileLists {
		c := dialRaw(t, h)
		c.send(encode(t, &wire.Hello{}), newToken(t, h), encode(t, &wire.List{}))
		lists.Go(func() {
			for {
				_, err := wire.Read(c.conn, wire.MaxMessage)
				select {
				case listed <- struct{}{}:
				default:
				}
				select {
				case <-stop:
					return
				default:
				}
				if err != nil {
					return
				}
				c.send(encode(t, &wire.List{}))
			}
		})
	}
	var conns []*quic.Conn
	var most int
	measure := func() {
		most = max(most, memory())
	}
	for i := range hostileConns {
		conn, err := tryDial(h.Addr)
		if err != nil {
			continue
		}
		t.Cleanup(func() { conn.Close() })
		conns = append(conns, conn)
		m := slices.Concat(encode(t, &wire.Hello{}), newToken(t, h), encode(t, &wire.List{}), header(wire.TypeKill, wire.MaxMessage))
		conn.Write(m)
		go conn.Write(make([]byte, 100<<10)) // a request that never ends
		go func() {
			const taken = 7 // by the daemon, before it closes the connection
			for range taken {
				conn.SendDatagram(make([]byte, carrier.MaxDatagram))
			}
		}()
		if i%20 == 0 {
			measure()
		}
	}
	alive := func() (n int) {
		for _, c := range conns {
			if c.Context().Err() == nil {
				n++
			}
		}
		return n
	}
	for until := time.Now().Add(rig.Patience); alive() > accountConns; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d of %d connections of the account stay, want at most %d", alive(), len(conns), accountConns)
		}
	}
	for range hostileLists {
		select {
		case <-listed: // or its connection was closed for a newer one
		case <-time.After(rig.Patience):
			t.Fatal("no listing")
		}
		measure()
	}
	x.Run("echo st''ill here", "still here")
	measure()
	close(stop)
	t.Logf("%d connections, %d answers of fake holders: %d MiB before, at most %d MiB", len(conns), answered.Load(), before>>20, most>>20)
	if cost := most - before; !raceEnabled && cost > accountMemory {
		t.Errorf("one account costs the daemon %d MiB, want at most %d MiB", cost>>20, accountMemory>>20)
	}
}

// fakeHolder listens as the holder of a session, and answers with as much as a message may
// have.
func fakeHolder(t *testing.T, h *rig.Host, id wire.SessionID, answered *atomic.Int64) {
	t.Helper()
	path := h.Path(fmt.Sprintf("run/%d/%s", os.Getuid(), socket.Name(id)))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Read(make([]byte, 1<<10))
				c.Write(header(wire.TypeState, wire.MaxMessage))
				c.Write(make([]byte, wire.MaxMessage))
				answered.Add(1)
				io.Copy(io.Discard, c)
			}()
		}
	}()
}
