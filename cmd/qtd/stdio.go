//go:build linux || darwin

package main

import (
	"io"
	"net"
	"os"
	"strings"

	"github.com/quicterm/quicterm/quicterm/bootstrap"
)

// carryStdio makes our standard input and output the carrier of a client, until the daemon ends
// that. base is the setting runtime_dir.
func carryStdio(base string, start func() error) error {
	client, server := sshAddresses(os.Getenv("SSH_CONNECTION"))
	grant, c, err := bootstrap.Open(base, client, server, start)
	if err != nil {
		return err
	}
	defer c.Close()
	line, err := bootstrap.Line(grant)
	if err != nil {
		return err
	}
	// What the login has printed may not have ended its line.
	if _, err := io.WriteString(os.Stdout, "\n"+line+"\n"); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { // ends with the process at the latest
		err := fromClient(c, os.Stdin)
		failed <- err
		if err != nil {
			c.Close()
		}
	}()
	io.Copy(os.Stdout, c)
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// fromClient passes what a client sends on to the daemon, until its end.
func fromClient(c *net.UnixConn, in io.Reader) error {
	first, rest, err := bootstrap.ReadOpen(in)
	if err != nil {
		return err
	}
	if _, err := c.Write(first); err != nil {
		return nil // the daemon has ended the connection
	}
	io.Copy(c, rest)
	c.CloseWrite()
	return nil
}

// sshAddresses returns the two ends of the connection that sshd names in an environment
// variable, or nothing if that is not set. The daemon parses them.
func sshAddresses(connection string) (client, server string) {
	f := strings.Fields(connection)
	if len(f) != 4 {
		return "", ""
	}
	return net.JoinHostPort(f[0], f[1]), net.JoinHostPort(f[2], f[3])
}
