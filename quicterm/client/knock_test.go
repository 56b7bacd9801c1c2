//go:build linux || darwin

package client

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate"
)

// A failing network gives a socket whose reads fail at once, and then sockets that work.
type failing struct {
	Network
	net    *netem.Net
	opened int
}

func (f *failing) Listen(string) (net.PacketConn, error) {
	f.opened++
	socket := f.net.Listen(netip.MustParseAddrPort("10.0.0.1:0"))
	if f.opened == 1 {
		return broken{socket}, nil
	}
	return socket, nil
}

// A broken socket sends, and receives nothing, as when an error of the network is pending.
type broken struct{ net.PacketConn }

func (broken) ReadFrom([]byte) (int, net.Addr, error) { return 0, nil, errors.New("network is down") }

// When a socket for knocks has failed, the next knock uses another one, and its answer arrives.
func TestKnockSocketFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := netem.NewLink(netem.Config{}, 1)
		network := &failing{net: netem.NewNet(func(_, _ netip.AddrPort) *netem.Link { return link })}
		defer network.net.Close()
		server := network.net.Listen(serverAddr)
		defer server.Close()
		ctx, cancel := context.WithCancel(context.Background())
		r := &roamer{session: &Session{client: &Client{network: network}}, events: make(chan any)}
		r.knocker = r.newKnocker(ctx)
		defer r.knocker.wg.Wait()
		defer cancel()
		defer r.knocker.stop()

		next := func() any {
			select {
			case e := <-r.events:
				return e
			case <-time.After(time.Minute):
				t.Fatal("no event within a minute")
				return nil
			}
		}
		to := migrate.Candidate{Remote: serverAddr}
		r.knocker.knock(to)
		r.handleEvent(ctx, next())
		r.knocker.knock(to)
		packet := make([]byte, 1500)
		for range 2 {
			_, from, err := server.ReadFrom(packet)
			if err != nil {
				t.Fatal(err)
			}
			server.WriteTo(packet[:21], from)
		}
		if e, want := next(), (migrate.Answered{Candidate: to}); e != want {
			t.Errorf("after the first socket has failed, the event is %v, want %v", e, want)
		}
		if network.opened != 2 {
			t.Errorf("%d sockets were opened, want 2", network.opened)
		}
	})
}
