//go:build linux

package work

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// NeedsRoot reports why no process can be one of another account here, or nil.
func NeedsRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("processes of another account need root")
	}
	return nil
}

// letStrangerIn lets [program.Stranger] log in with the key of the host's account.
func letStrangerIn(t *measure.T, h *rig.Host) {
	// The account's child gets to the file.
	if err := errors.Join(os.Chmod(h.Dir, 0o711), os.Chmod(h.Path("authorized_keys"), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// fakeHolders listens at a number of sockets as holders of sessions of [program.Stranger], which the process becomes.
func fakeHolders(dir string, number int) error {
	err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(program.StrangerUID), syscall.Setuid(program.StrangerUID))
	for n := range number {
		if err == nil {
			err = fakeHolder(filepath.Join(dir, socket.Name(wire.SessionID{byte(n >> 8), byte(n)})))
		}
	}
	return err
}

// fakeHolder listens as the holder of a session, and answers with as much as a message may
// have.
func fakeHolder(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	answer := append(header(wire.TypeState), make([]byte, wire.MaxMessage)...)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				continue // it has too many files open
			}
			go func() {
				defer c.Close()
				c.Read(make([]byte, 1<<10))
				c.Write(answer)
				io.Copy(io.Discard, c)
			}()
		}
	}()
	return nil
}

// header returns the header of the longest message.
func header(typ wire.Type) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(typ)<<24|wire.MaxMessage)
}

// list logs in as the account and asks for a listing. If it is to go on, it asks again after
// each answer; otherwise it sends at once as much as the daemon takes. It returns when the
// daemon closes the connection.
func list(c *quic.Conn, key *auth.UserKey, again bool) {
	answer, err := answer(c, key)
	if err != nil {
		return
	}
	request := message(&wire.List{})
	login := [][]byte{
		message(&wire.Hello{User: program.Stranger, Keys: [][]byte{answer.Key}}),
		message(answer),
		request,
	}
	if !again {
		const more = 100 << 10 // than the daemon takes
		login = append(login, header(wire.TypeKill), make([]byte, more))
		go func() {
			const taken = 7 // by the daemon, before it closes the connection
			for range taken {
				c.SendDatagram(make([]byte, carrier.MaxDatagram))
			}
		}()
	}
	go c.Write(bytes.Join(login, nil))
	for {
		if _, err := wire.Read(c, wire.MaxMessage); err != nil {
			return
		}
		if again {
			c.Write(request)
		}
	}
}

// message encodes a message.
func message(v wire.Body) []byte {
	m, err := wire.New(v)
	if err != nil {
		panic(err) // ours are valid
	}
	return m.Append(nil)
}
