//go:build linux || darwin

package holder

import (
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// answerTime is how long a daemon waits for a holder's answer. A holder does
// nothing slow before it answers, unless its user has stopped it.
const answerTime = 5 * time.Second

// Ask sends a request to the holder at a socket, which the given account must
// serve, and returns its answer.
func Ask(path string, uid uint32, open *wire.Open, request wire.Message) (wire.Message, error) {
	c, answer, err := ask(path, uid, open, request, nil)
	if err != nil {
		return wire.Message{}, err
	}
	c.Close()
	return answer, nil
}

// Carry asks like Ask for something that makes the connection a carrier, which
// it returns with the answer. Where the answer says no, the carrier is of no use
// and must be closed all the same.
func Carry(path string, uid uint32, open *wire.Open, request wire.Message) (wire.Message, *carrier.Unix, error) {
	ours, theirs, err := carrier.DatagramPair()
	if err != nil {
		return wire.Message{}, nil, err
	}
	c, answer, err := ask(path, uid, open, request, theirs)
	theirs.Close()
	if err != nil {
		ours.Close()
		return wire.Message{}, nil, err
	}
	u, err := carrier.NewUnix(c, ours)
	if err != nil {
		c.Close()
		ours.Close()
		return wire.Message{}, nil, err
	}
	return answer, u, nil
}

func ask(path string, uid uint32, open *wire.Open, request wire.Message, descriptor *os.File) (*net.UnixConn, wire.Message, error) {
	c, err := rundir.Dial(path, uid)
	if err != nil {
		return nil, wire.Message{}, err
	}
	answer, err := exchange(c, open, request, descriptor)
	if err != nil {
		c.Close()
		return nil, wire.Message{}, fmt.Errorf("ask holder: %w", err)
	}
	return c, answer, nil
}

func exchange(c *net.UnixConn, open *wire.Open, request wire.Message, descriptor *os.File) (wire.Message, error) {
	c.SetDeadline(time.Now().Add(answerTime))
	defer c.SetDeadline(time.Time{})
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
	return wire.Read(c, wire.MaxMessage)
}
