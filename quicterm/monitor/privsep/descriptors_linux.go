package privsep

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
)

func (a *Attached) takeFiles(files []*os.File) (err error) {
	a.Carrier, err = carrierOf(files)
	return err
}

func (a *Resumed) takeFiles(files []*os.File) (err error) {
	if a.NoSession || a.Denied {
		closeFiles(files)
		return nil
	}
	a.Carrier, err = carrierOf(files)
	return err
}

// passed is the descriptor that comes with a request. The caller keeps fd open, and file is the callee's.
type passed struct {
	fd   int
	file *os.File
}

func (p *passed) descriptors() []int { return []int{p.fd} }

func (p *passed) takeFiles(files []*os.File) error {
	if len(files) != 1 {
		closeFiles(files)
		return fmt.Errorf("%d descriptors instead of one", len(files))
	}
	p.file = files[0]
	return nil
}

// handOver returns the descriptors of a carrier to a holder, and closes the carrier: the other process
// has it then. The request of the client was sent and answered on it, so the holder takes nothing
// from it any more but the frames of this client. The login, if there is one, gets a leash on it.
func (p *Process) handOver(c carrier.Carrier, login LoginID) (fds []int, err error) {
	if c == nil {
		return nil, nil
	}
	defer c.Close()
	defer func() {
		if err != nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
			fds = nil
		}
	}()
	u, ok := c.(*unixsock.Conn)
	if !ok {
		return nil, errors.New("a carrier that is no socket cannot be handed over")
	}
	for _, socket := range u.Sockets() {
		fd, err := descriptorOf(socket)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	if login == (LoginID{}) {
		return fds, nil
	}
	held, err := unix.FcntlInt(uintptr(fds[0]), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fds, err
	}
	return fds, p.host.Logins.Hold(login, func() {
		unix.Shutdown(held, unix.SHUT_RDWR) // whoever has descriptors of it
		unix.Close(held)
	})
}

// A handedOver is a carrier of which the monitor has a descriptor, too: it ends when it is shut.
type handedOver struct{ *unixsock.Conn }

// Close implements [carrier.Carrier].
func (h handedOver) Close() error {
	stream := h.Sockets()[0]
	stream.CloseWrite()
	stream.CloseRead()
	return h.Conn.Close()
}

func socketOf(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("not a unix socket"), c.Close())
	}
	return socket, nil
}

// carrierOf returns the carrier of the files of its stream and, if it has them, its datagrams.
func carrierOf(files []*os.File) (carrier.Carrier, error) {
	defer closeFiles(files)
	var sockets []*net.UnixConn
	for _, f := range files {
		s, err := socketOf(f)
		if err != nil {
			for _, s := range sockets {
				s.Close()
			}
			return nil, err
		}
		sockets = append(sockets, s)
	}
	var datagrams *net.UnixConn
	switch len(sockets) {
	case 0:
		return nil, errors.New("an answer without a carrier")
	case 2:
		datagrams = sockets[1]
	}
	c, err := unixsock.New(sockets[0], datagrams)
	return handedOver{c}, err
}

// descriptorOf returns another descriptor of a socket.
func descriptorOf(s syscall.Conn) (fd int, err error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return -1, err
	}
	var dupErr error
	if err := raw.Control(func(one uintptr) { fd, dupErr = unix.FcntlInt(one, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return -1, err
	}
	return fd, os.NewSyscallError("dup", dupErr)
}
