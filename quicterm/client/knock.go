package client

import (
	"context"
	"net"
	"sync"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
)

// A knocker sends knocks on candidates, over a socket for each, and calls answered when one is
// answered. The roamer's loop owns it.
type knocker struct {
	network  Network
	answered func(migrate.Candidate)
	sockets  map[migrate.Candidate]net.PacketConn
	wg       sync.WaitGroup
}

// knock sends a knock. Errors of the socket are lost packets.
func (k *knocker) knock(c migrate.Candidate) {
	socket := k.sockets[c]
	if socket == nil {
		var err error
		if socket, err = k.network.Listen(interfaceOf(c)); err != nil {
			return
		}
		k.sockets[c] = socket
		k.wg.Go(func() {
			for quic.AwaitKnock(socket, c.Remote) == nil {
				k.answered(c)
			}
		})
	}
	quic.SendKnock(socket, c.Remote, quic.MinKnock)
}

// stop closes all sockets.
func (k *knocker) stop() {
	for c, socket := range k.sockets {
		socket.Close()
		delete(k.sockets, c)
	}
}

// newKnocker returns a knocker that posts answers to the roamer's loop until the context ends.
func (r *roamer) newKnocker(ctx context.Context) *knocker {
	return &knocker{
		network:  r.session.client.network,
		answered: func(c migrate.Candidate) { r.post(ctx, migrate.Answered{Candidate: c}) },
		sockets:  make(map[migrate.Candidate]net.PacketConn),
	}
}
