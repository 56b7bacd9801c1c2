//go:build linux || darwin

package socket

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// AnswerTime is how long a daemon waits for a holder's answer. A holder answers at once, unless its user has
// stopped it.
const AnswerTime = 5 * time.Second

// Ask sends a request to the holder that listens at a socket as the account uid, and returns its answer, of at most
// wire.MaxAnswer bytes. It blocks until ctx ends, at most for AnswerTime.
func Ask(ctx context.Context, path string, uid uint32, open *wire.Open, request wire.Message) (wire.Message, error) {
	c, answer, err := ask(ctx, path, uid, open, request, nil)
	if err == nil {
		c.Close()
	}
	return answer, err
}

// Carry is Ask for an Attach or a Resume: after Attached or Resumed the connection is a
// carrier, with datagrams if that is asked for. The caller closes it, whatever the answer is.
func Carry(
	ctx context.Context, path string, uid uint32, open *wire.Open, request wire.Message, datagrams bool,
) (answer wire.Message, u *unixsock.Conn, err error) {
	var ours *net.UnixConn
	var theirs *os.File
	if datagrams {
		if ours, theirs, err = unixsock.DatagramPair(); err != nil {
			return answer, nil, err
		}
		defer theirs.Close()
		defer func() {
			if err != nil {
				ours.Close()
			}
		}()
	}
	c, answer, err := ask(ctx, path, uid, open, request, theirs)
	if err != nil {
		return answer, nil, err
	}
	if u, err = unixsock.New(c, ours); err != nil {
		c.Close()
	}
	return answer, u, err
}

// AskAtEnd asks the holder that listens at a socket as the account uid for its Report when the session
// is over, which then comes on the connection. The caller closes it.
func AskAtEnd(path string, uid uint32) (net.Conn, error) {
	request, err := wire.New(&wire.Inspect{AtEnd: true})
	if err != nil {
		return nil, err
	}
	c, err := rundir.Dial(path, uid)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(AnswerTime))
	if err := send(c, &wire.Open{}, request, nil); err != nil {
		c.Close()
		return nil, fmt.Errorf("ask holder: %w", err)
	}
	return c, c.SetDeadline(time.Time{})
}

// ask returns the connection on which the answer came. It is nil after an error.
func ask(
	ctx context.Context, path string, uid uint32, open *wire.Open, request wire.Message, descriptor *os.File,
) (*net.UnixConn, wire.Message, error) {
	c, err := rundir.Dial(path, uid)
	if err != nil {
		return nil, wire.Message{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, AnswerTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Now()) })
	var answer wire.Message
	if err = send(c, open, request, descriptor); err == nil {
		answer, err = wire.Read(c, wire.MaxAnswer)
	}
	if !stop() { // the connection has a deadline now, whatever came
		err = fmt.Errorf("no answer: %w", ctx.Err())
	}
	if err != nil {
		c.Close()
		return nil, wire.Message{}, fmt.Errorf("ask holder: %w", err)
	}
	return c, answer, nil
}

func send(c *net.UnixConn, open *wire.Open, request wire.Message, descriptor *os.File) error {
	var rights []byte
	if descriptor != nil {
		rights = unix.UnixRights(int(descriptor.Fd()))
	}
	if _, _, err := c.WriteMsgUnix([]byte{0}, rights, nil); err != nil {
		return err
	}
	if err := wire.Send(c, open); err != nil {
		return err
	}
	return wire.Write(c, request)
}

// ReceiveDescriptor reads the byte that begins a connection, and returns the datagram
// socket that is passed with it, or nil.
func ReceiveDescriptor(c *net.UnixConn) (*net.UnixConn, error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := c.ReadMsgUnix(b[:], oob)
	if err != nil {
		return nil, fmt.Errorf("first byte: %w", err)
	}
	if n != 1 {
		return nil, io.ErrUnexpectedEOF
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil, err
	}
	for _, fd := range fds[1:] { // alignment makes room for more than one
		unix.Close(fd)
	}
	unix.CloseOnExec(fds[0])
	return unixsock.DatagramSocket(os.NewFile(uintptr(fds[0]), "datagrams"))
}
