package sshlogin

import (
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// A stream is the standard input and output of a command.
type stream struct {
	io.Reader
	in      io.WriteCloser
	session *ssh.Session
	conn    *connection
	close   func() error
}

// start starts a command.
func start(conn *connection, command string, errors io.Writer) (io.ReadWriteCloser, error) {
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
	session.Stderr = errors // nil drops them
	if err := session.Start(command); err != nil {
		return nil, err
	}
	s := &stream{Reader: out, in: in, session: session, conn: conn}
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
	s.session.Wait() // its error is that of the closed connection
	return err
}
