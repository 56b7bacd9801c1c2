//go:build linux || darwin

package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"

	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
)

// carryStdio makes our standard input and output the carrier of a client, until the daemon ends
// that. base is the setting runtime_dir; start starts a daemon, and may set the grant's warning.
func carryStdio(base string, start func() error, warning *string) error {
	// It is for no other process: a daemon that starts now would inherit it.
	early := bootstrap.Early(os.Getenv(bootstrap.OpenVariable))
	os.Unsetenv(bootstrap.OpenVariable)
	grant, c, err := bootstrap.Open(base, start)
	if err != nil {
		return err
	}
	defer c.Close()
	grant.Warning = *warning
	c.Write(early) // if the daemon has ended the connection, what is read says so
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
		err := fromClient(c, os.Stdin, early)
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

// errOtherOpen means that the two places for the first bytes of a client have different ones.
var errOtherOpen = errors.New("the first line on standard input is not as " + bootstrap.OpenVariable + " has it")

// fromClient passes what a client sends on to the daemon, until its end, except its first bytes if
// the daemon has them already.
func fromClient(c *net.UnixConn, in io.Reader, early []byte) error {
	first, rest, err := bootstrap.ReadOpen(in)
	if err != nil {
		return err
	}
	if len(early) > 0 && !bytes.Equal(first, early) {
		return errOtherOpen
	}
	if len(early) == 0 {
		if _, err := c.Write(first); err != nil {
			return nil // the daemon has ended the connection
		}
	}
	io.Copy(c, rest)
	c.CloseWrite()
	return nil
}
