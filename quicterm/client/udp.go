//go:build !js

package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
)

// What needs UDP is here, in quicdialer.go and in package quic. A browser has none.

func awaitKnock(socket net.PacketConn, remote netip.AddrPort) error {
	return quic.AwaitKnock(socket, remote)
}

func sendKnock(socket net.PacketConn, remote netip.AddrPort) {
	quic.SendKnock(socket, remote, quic.MinKnock)
}

func addQUIC(dialers map[migrate.Transport]dialer, network Network, conf *tls.Config) {
	dialers[migrate.QUIC] = newQUICDialer(network, conf)
}

// Knock reports whether the server answers a UDP packet with a payload of some size, at least 64
// bytes. It says nothing about who answers.
func (c *Client) Knock(ctx context.Context, to Candidate, size int) (bool, error) {
	socket, err := c.network.Listen(interfaceOf(to.internal()))
	if err != nil {
		return false, err
	}
	defer socket.Close()
	return quic.Knock(ctx, socket, to.Remote, size)
}
