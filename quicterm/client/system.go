//go:build !js

package client

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/migrate/netmon"
)

// system is the network of this machine.
type system struct{}

func (system) Listen(iface string) (net.PacketConn, error) { return quic.ListenUDP(iface) }
func (system) Dial(ctx context.Context, iface string, remote netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{Control: netmon.Bind(iface)}
	return d.DialContext(ctx, "tcp", remote.String())
}

// Refuses reports whether the system at an address says that no program there has the UDP port. Only a socket that is
// connected hears that. It blocks for at most twice nextDial. It asks again and again: systems answer about once a second,
// and the packets of QUIC, which does not hear the answer, take some of these (RFC 4443, 2.4 (f)).
func (system) Refuses(ctx context.Context, remote netip.AddrPort) bool {
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", remote.String())
	if err != nil {
		return false
	}
	defer c.Close()
	for until := time.Now().Add(2 * nextDial); time.Now().Before(until) && ctx.Err() == nil; {
		c.SetDeadline(time.Now().Add(nextDial / 10))
		_, err = c.Write([]byte{0}) // no packet of QUIC: a daemon drops it
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.Is(err, syscall.ECONNREFUSED)
		}
	}
	return false
}

func (system) Interfaces() ([]string, error) { return netmon.Interfaces() }
func (system) Lookup(remote netip.AddrPort, iface string) (netmon.Route, error) {
	return netmon.Lookup(remote, iface)
}
func (system) Watch(ctx context.Context, remote func() netip.AddrPort, f func(netmon.Event)) error {
	return netmon.Watch(ctx, remote, f)
}
