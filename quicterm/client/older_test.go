package client

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/pipe"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An olderServer is one from before staying, behind a tunnel.
type olderServer struct {
	wg     sync.WaitGroup
	logins int
}

func (s *olderServer) Dial(context.Context, bool) (carrier.Carrier, error) {
	ours, theirs := net.Pipe()
	s.logins++
	s.wg.Go(func() {
		defer theirs.Close()
		theirs.SetDeadline(time.Now().Add(30 * time.Second))
		wire.Read(theirs, wire.MaxMessage) // Hello
		for {
			m, err := wire.Read(theirs, wire.MaxMessage)
			if err != nil {
				return
			}
			switch m.Type {
			case wire.TypeList:
				err = wire.Send(theirs, &wire.Listing{})
			default:
				err = wire.Send(theirs, &wire.Error{Code: wire.CodeUnknown, Text: "unknown"})
			}
			if err != nil {
				return
			}
		}
	})
	return pipe.New(ours), nil
}

// withOlder calls f with a client of an older server.
func withOlder(t *testing.T, f func(s *olderServer, c *Client)) {
	synctest.Test(t, func(t *testing.T) {
		s := new(olderServer)
		f(s, New(Config{
			Tunnel: s, TunnelFirst: true,
			Resolve: func(ctx context.Context) ([]netip.AddrPort, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}))
		s.wg.Wait()
	})
}

// Sessions of a server that ends a connection after a while are followed without a loss of contact.
func TestFollowOlderServer(t *testing.T) {
	withOlder(t, func(s *olderServer, c *Client) {
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
		defer stop()
		listings := 0
		for ctx.Err() == nil {
			err := c.Follow(ctx, func([]wire.Info, int) { listings++ })
			if err != nil && ctx.Err() == nil {
				t.Fatalf("after %d listings: %v", listings, err)
			}
		}
		if listings < 290 || s.logins > 20 {
			t.Errorf("%d listings in %d logins", listings, s.logins)
		}
	})
}
