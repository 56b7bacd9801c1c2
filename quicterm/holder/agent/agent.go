//go:build linux || darwin

// Package agent is the ssh agent of a session. SSH_AUTH_SOCK of its program is one path for the session's life, behind which is
// the agent that a client offers; the holder says which client. While none does, it has no keys.
//
// The agents of clients are reached at sockets whose names the clients have chosen, where `qtd forward` listens for them
// (listen.go). What passes is not interpreted, except for the length of messages.
package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxConns bounds the connections of programs to the agent of a session.
	maxConns = 64

	// firstTime is how long programs wait for the first agent that is offered: they run before their client is there.
	firstTime = 5 * time.Second
)

// The numbers of messages (draft-ietf-sshm-ssh-agent, 6.1).
const (
	failure           = 5
	requestIdentities = 11
	identitiesAnswer  = 12
)

// A switchboard connects programs with the agent that is offered now. It is safe for concurrent use.
type switchboard struct {
	dial  func(wire.AgentID) (net.Conn, error)
	first context.Context // ends with the first offer, or after firstTime
	begun context.CancelFunc

	mu      sync.Mutex
	offered wire.AgentID
	conns   map[net.Conn]net.Conn // of programs, with those to the agent that they have asked, or nil; nil after close
}

func newSwitchboard(dial func(wire.AgentID) (net.Conn, error)) *switchboard {
	s := &switchboard{dial: dial, conns: make(map[net.Conn]net.Conn)}
	s.first, s.begun = context.WithTimeout(context.Background(), firstTime)
	return s
}

// Offer says which agent programs can use, or none with a zero id. It ends the connections to another one, and does not
// block.
func (s *switchboard) Offer(id wire.AgentID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == s.offered {
		return
	}
	s.offered = id
	s.begun()
	for c, to := range s.conns {
		if to != nil {
			c.Close()
			to.Close()
		}
	}
}

// close ends all connections, also those to come.
func (s *switchboard) close() {
	s.Offer(wire.AgentID{})
	s.begun()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
	s.conns = nil
}

// add takes a connection, unless there are too many.
func (s *switchboard) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil || len(s.conns) == maxConns {
		return false
	}
	s.conns[c] = nil
	return true
}

// remove ends a connection, and that to an agent.
func (s *switchboard) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to := s.conns[c]; to != nil {
		to.Close()
	}
	c.Close() // a program that takes no answers may have ended only what it sends
	delete(s.conns, c)
}

// serve serves a program until its connection ends, which serve closes.
func (s *switchboard) serve(c net.Conn) {
	if !s.add(c) {
		c.Close()
		return
	}
	var answers sync.WaitGroup
	defer answers.Wait()
	defer s.remove(c)
	var to net.Conn
	for {
		n, err := readLength(c)
		if err != nil {
			return
		}
		if to == nil {
			if to, err = s.bind(c); err != nil {
				return
			}
			if to != nil {
				answers.Go(func() {
					pass(c, to)
					c.Close()
				})
			}
		}
		if to != nil {
			err = passOne(to, c, n)
		} else {
			err = answerEmpty(c, n)
		}
		if err != nil {
			return
		}
	}
}

var errCut = errors.New("another agent is offered")

// bind connects a program to the agent that is offered. It returns nil if there is none.
func (s *switchboard) bind(c net.Conn) (net.Conn, error) {
	<-s.first.Done()
	s.mu.Lock()
	id := s.offered
	s.mu.Unlock()
	if id == (wire.AgentID{}) {
		return nil, nil
	}
	to, err := s.dial(id)
	if err != nil {
		return nil, nil // the client is about to leave, or to offer it again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offered != id || s.conns == nil {
		to.Close()
		return nil, errCut
	}
	s.conns[c] = to
	return to, nil
}

// answerEmpty reads the rest of a request, of n bytes, and answers as an agent without keys.
func answerEmpty(c net.Conn, n uint32) error {
	var number [1]byte
	if _, err := io.ReadFull(c, number[:]); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, c, int64(n)-1); err != nil {
		return err
	}
	answer := []byte{0, 0, 0, 1, failure}
	if number[0] == requestIdentities {
		answer = []byte{0, 0, 0, 5, identitiesAnswer, 0, 0, 0, 0}
	}
	_, err := c.Write(answer)
	return err
}

// pass passes messages on until an end.
func pass(to io.Writer, from io.Reader) {
	for {
		n, err := readLength(from)
		if err == nil {
			err = passOne(to, from, n)
		}
		if err != nil {
			return
		}
	}
}

// passOne passes a message on that has n bytes behind its length.
func passOne(to io.Writer, from io.Reader, n uint32) error {
	if _, err := to.Write(binary.BigEndian.AppendUint32(nil, n)); err != nil {
		return err
	}
	_, err := io.CopyN(to, from, int64(n))
	return err
}

// readLength reads the length with which a message begins.
func readLength(r io.Reader) (uint32, error) {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return wire.ParseAgentLength(b[:])
}
