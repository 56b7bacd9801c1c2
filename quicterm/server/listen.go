//go:build linux || darwin

package server

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
)

// A granted daemon takes the first free port: the usual one, else one of the range
// that mosh uses, which firewalls may allow.
const (
	firstGrantedPort = 60000
	lastGrantedPort  = 61000
)

// listen opens the UDP sockets that the settings name, or that of a granted daemon.
func (s *Server) listen() ([]net.PacketConn, error) {
	if s.granted {
		c, err := listenLoopback()
		if err != nil {
			return nil, err
		}
		return []net.PacketConn{c}, nil
	}
	var sockets []net.PacketConn
	for _, address := range s.settings.Listen {
		c, err := listenUDP(address)
		if err != nil {
			for _, c := range sockets {
				c.Close()
			}
			return nil, err
		}
		sockets = append(sockets, c)
	}
	return sockets, nil
}

func listenUDP(address string) (*quic.Socket, error) {
	addr, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("address to listen on: %w", err)
	}
	c, err := net.ListenUDP("udp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: another qtd may be running: stop it, or listen on another port", err)
	}
	if err != nil {
		return nil, err
	}
	return &quic.Socket{UDPConn: c}, nil
}

func listenLoopback() (*quic.Socket, error) {
	var failure error
	try := func(port int) *quic.Socket {
		for _, ip := range []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback} {
			c, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip, Port: port})
			if err == nil {
				return &quic.Socket{UDPConn: c}
			}
			failure = err
		}
		return nil
	}
	if c := try(configs.DefaultPort); c != nil {
		return c, nil
	}
	for port := firstGrantedPort; port <= lastGrantedPort; port++ {
		if c := try(port); c != nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no free UDP port on the loopback interface: %w", failure)
}
