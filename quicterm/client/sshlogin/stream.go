package sshlogin

import (
	"errors"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// A stream is the standard input and output of a command.
type stream struct {
	io.Reader
	in    io.WriteCloser
	conn  *connection
	wait  func() error // until the command has ended
	close func() error
}

// start starts a command.
func start(conn *connection, command string, stderr io.Writer) (io.ReadWriteCloser, error) {
	session, err := conn.client.NewSession()
	if err != nil {
		return nil, err
	}
	in, err := session.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	session.Stderr = stderr // nil drops them
	if err := session.Start(command); err != nil {
		return nil, err
	}
	s := &stream{Reader: out, in: in, conn: conn, wait: sync.OnceValue(session.Wait)}
	s.close = sync.OnceValue(s.end)
	return s, nil
}

// Write implements [io.Writer].
func (s *stream) Write(b []byte) (int, error) { return s.in.Write(b) }

// CloseWrite ends the standard input of the command.
func (s *stream) CloseWrite() error { return s.in.Close() }

// Close implements [io.Closer]. It makes reads and writes that block return.
func (s *stream) Close() error { return s.close() }

// end closes the connection, and waits until nothing more is written to Errors.
func (s *stream) end() error {
	err := s.conn.Close()
	s.wait() // its error may be that of the closed connection
	return err
}

// ExitStatus waits until the command ends, and returns its status, or -1 if it has none.
func (s *stream) ExitStatus() int {
	err := s.wait()
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Signal() == "":
		return exit.ExitStatus()
	}
	return -1
}
