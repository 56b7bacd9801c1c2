package client

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/quicterm/quicterm/migrate"
)

// A knocker sends knocks on candidates, over a socket for each, and posts answers. The roamer's loop owns it.
type knocker struct {
	network Network
	post    func(e any) // migrate.Answered or knockFailed
	sockets map[migrate.Candidate]net.PacketConn
	wg      sync.WaitGroup
}

// knockFailed is the event that the socket for knocks on a candidate can receive no more answers.
type knockFailed struct {
	candidate migrate.Candidate
	socket    net.PacketConn
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
			for {
				switch err := awaitKnock(socket, c.Remote); {
				case err == nil:
					k.post(migrate.Answered{Candidate: c})
				case errors.Is(err, net.ErrClosed):
					return
				default:
					k.post(knockFailed{c, socket})
					return
				}
			}
		})
	}
	sendKnock(socket, c.Remote)
}

// failed makes the next knock on a candidate use another socket.
func (k *knocker) failed(e knockFailed) {
	e.socket.Close()
	if k.sockets[e.candidate] == e.socket {
		delete(k.sockets, e.candidate)
	}
}

// stop closes all sockets.
func (k *knocker) stop() {
	for c, socket := range k.sockets {
		socket.Close()
		delete(k.sockets, c)
	}
}

// newKnocker returns a knocker that posts to the roamer's loop until the context ends.
func (r *roamer) newKnocker(ctx context.Context) *knocker {
	return &knocker{
		network: r.session.client.network,
		post:    func(e any) { r.post(ctx, e) },
		sockets: make(map[migrate.Candidate]net.PacketConn),
	}
}
