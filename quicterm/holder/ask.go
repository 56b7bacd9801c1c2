//go:build linux || darwin

package holder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// answerTime is how long a daemon waits for a holder's answer. A holder answers at once,
// unless its user has stopped it.
const answerTime = 5 * time.Second

// Ask sends a request to the holder that listens at a socket as the account uid, and
// returns its answer, of at most wire.MaxAnswer bytes. It blocks until ctx ends, at most for
// answerTime.
func Ask(ctx context.Context, path string, uid uint32, open *wire.Open, request wire.Message) (wire.Message, error) {
	c, answer, err := ask(ctx, path, uid, open, request, nil)
	if err != nil {
		return wire.Message{}, err
	}
	c.Close()
	return answer, nil
}

// Carry is Ask for an Attach or a Resume: after Attached or Resumed the connection is a
// carrier, with datagrams if that is asked for. The caller closes it, whatever the answer is.
func Carry(
	ctx context.Context, path string, uid uint32, open *wire.Open, request wire.Message, datagrams bool,
) (wire.Message, *unixsock.Conn, error) {
	if !datagrams {
		c, answer, err := ask(ctx, path, uid, open, request, nil)
		if err != nil {
			return wire.Message{}, nil, err
		}
		u, err := unixsock.New(c, nil)
		return answer, u, err
	}
	ours, theirs, err := unixsock.DatagramPair()
	if err != nil {
		return wire.Message{}, nil, err
	}
	c, answer, err := ask(ctx, path, uid, open, request, theirs)
	theirs.Close()
	if err != nil {
		ours.Close()
		return wire.Message{}, nil, err
	}
	u, err := unixsock.New(c, ours)
	if err != nil {
		c.Close()
		ours.Close()
		return wire.Message{}, nil, err
	}
	return answer, u, nil
}

// AskAtEnd asks the holder that listens at a socket as the account uid for its Report when the session
// is over, which then comes on the connection. The caller closes it.
func AskAtEnd(path string, uid uint32) (net.Conn, error) {
	c, err := rundir.Dial(path, uid)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(answerTime))
	_, err = c.Write([]byte{0})
	if err == nil {
		err = errors.Join(wire.Send(c, &wire.Open{}), wire.Send(c, &wire.Inspect{AtEnd: true}))
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("ask holder: %w", err)
	}
	return c, c.SetDeadline(time.Time{})
}

func ask(ctx context.Context, path string, uid uint32, open *wire.Open, request wire.Message, descriptor *os.File) (*net.UnixConn, wire.Message, error) {
	c, err := rundir.Dial(path, uid)
	if err != nil {
		return nil, wire.Message{}, err
	}
	answer, err := exchange(ctx, c, open, request, descriptor)
	if err != nil {
		c.Close()
		return nil, wire.Message{}, fmt.Errorf("ask holder: %w", err)
	}
	return c, answer, nil
}

func exchange(ctx context.Context, c *net.UnixConn, open *wire.Open, request wire.Message, descriptor *os.File) (answer wire.Message, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Now()) })
	defer func() {
		if !stop() { // the connection has a deadline now, whatever came
			err = fmt.Errorf("no answer: %w", ctx.Err())
		}
	}()
	var rights []byte
	if descriptor != nil {
		rights = unix.UnixRights(int(descriptor.Fd()))
	}
	if _, _, err := c.WriteMsgUnix([]byte{0}, rights, nil); err != nil {
		return wire.Message{}, err
	}
	if err := wire.Send(c, open); err != nil {
		return wire.Message{}, err
	}
	if err := wire.Write(c, request); err != nil {
		return wire.Message{}, err
	}
	return wire.Read(c, wire.MaxAnswer)
}
