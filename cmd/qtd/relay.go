//go:build linux || darwin

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// relayUsage is the hidden command by which plain ssh reaches sshd within a session of qt, and a page the daemon within a
// login of ssh: standard input and output are the connection.
const relayUsage = "relay port..."

// dialTimeout bounds a connection to an address of this machine.
const dialTimeout = 5 * time.Second

// dialHere connects to a program of this machine, at the first port that answers. It may
// listen on the address alone that clients use.
func dialHere(ports []string) (*net.TCPConn, error) {
	addresses := []string{"127.0.0.1", "::1"}
	if f := strings.Fields(os.Getenv("SSH_CONNECTION")); len(f) == 4 {
		addresses = append(addresses, f[2])
	}
	var errs []error
	for _, port := range ports {
		for _, a := range addresses {
			c, err := net.DialTimeout("tcp", net.JoinHostPort(a, port), dialTimeout)
			if err == nil {
				return c.(*net.TCPConn), nil
			}
			errs = append(errs, err)
		}
	}
	return nil, fmt.Errorf("nothing answers on this machine: %w", errors.Join(errs...))
}

// relay copies standard input to a program of this machine, and what that sends to standard output until
// its end.
func relay(ports []string) error {
	c, err := dialHere(ports)
	if err != nil {
		return err
	}
	go func() { // ends with the process at the latest
		io.Copy(c, os.Stdin)
		c.CloseWrite()
	}()
	_, err = io.Copy(os.Stdout, c)
	return err
}
