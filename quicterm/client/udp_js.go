package client

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"

	"github.com/quicterm/quicterm/migrate"
)

const hasUDP = false

var errNoUDP = errors.New("a browser has no UDP")

func listenUDP(string) (net.PacketConn, error)                   { return nil, errNoUDP }
func awaitKnock(net.PacketConn, netip.AddrPort) error            { return net.ErrClosed }
func sendKnock(net.PacketConn, netip.AddrPort)                   {}
func addQUIC(map[migrate.Transport]dialer, Network, *tls.Config) {}
