//go:build linux || darwin

package client

import (
	"context"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
)

// A login does not use a TLS ticket, which proves less than the host key; a redial does.
func TestLoginWithoutTicket(t *testing.T) {
	inWorld(t, netem.Config{Delay: 10 * time.Millisecond}, true, func(w *world) {
		s := w.attach(Streams{})
		done := make(chan struct{})
		w.kept.Go(func() {
			defer close(done)
			s.Run(context.Background())
		})
		d := s.client.dialers[migrate.QUIC].(*quicDialer)
		for {
			if _, ok := d.tls.ClientSessionCache.Get(d.tls.ServerName); ok {
				break
			}
			time.Sleep(time.Millisecond)
		}
		to := migrate.Candidate{Remote: serverAddr}
		again, err := d.dial(context.Background(), to)
		if err != nil {
			t.Fatal(err)
		}
		if again.(*quic.Conn).TLS().DidResume {
			t.Error("a login used a ticket")
		}
		again.Close()
		redialed, err := d.redial(context.Background(), to)
		if err != nil {
			t.Fatal(err)
		}
		<-redialed.(*quic.Conn).HandshakeComplete()
		if !redialed.(*quic.Conn).TLS().DidResume {
			t.Error("a redial did not use the ticket")
		}
		redialed.Close()
		s.Write([]byte{4}) // ^D
		<-done
	})
}
