//go:build linux || darwin

package client

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
)

// A losingServer is reached, and then loses the first connections.
type losingServer struct {
	*fakeServer
	loses  int64
	blocks bool // it is not reached after that
}

func (s *losingServer) dial(ctx context.Context, to migrate.Candidate) (carrier.Carrier, error) {
	from := fakeServer{connects: 100 * time.Millisecond, answers: never}
	switch over := s.dials.Add(1) > s.loses; {
	case over && s.blocks:
		from.connects = never
	case over:
		from.answers = 100 * time.Millisecond
	}
	return from.dial(ctx, to)
}

// A login whose connection is lost before the answer has another one, where TCP does not pass, too. If that fails, the
// error says that the server may have done what it was asked.
func TestLostLogin(t *testing.T) {
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		quic losingServer
		lost bool
	}{
		"one is lost":         {quic: losingServer{loses: 1}},
		"both are lost":       {quic: losingServer{loses: 2}, lost: true},
		"UDP is blocked then": {quic: losingServer{loses: 1, blocks: true}, lost: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			test.quic.fakeServer = new(fakeServer)
			c := New(Config{
				Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{serverAddr}, nil },
				CheckHost: func(ssh.PublicKey) error { return nil },
				Keys:      []*auth.UserKey{{Public: key}},
			})
			c.dialers[migrate.QUIC], c.dialers[migrate.TCP] = &test.quic, &fakeServer{connects: never}
			_, _, err := c.List(t.Context())
			c.Close()
			if lost := errors.As(err, new(*BrokenOffError)); lost != test.lost || err != nil && !lost {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait()
		})
	}
}
