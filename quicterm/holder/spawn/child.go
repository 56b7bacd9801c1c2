//go:build linux || darwin

package spawn

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// What follows is for the process that was started.

// ReadLaunch reads what a daemon has written to standard input.
func ReadLaunch() (*wire.Launch, error) {
	syscall.CloseOnExec(ReplyFD)
	launch := new(wire.Launch)
	m, err := wire.Read(os.Stdin, wire.MaxMessage)
	if err == nil {
		err = m.Decode(launch)
	}
	if err != nil {
		return nil, fmt.Errorf("read launch: %w", err)
	}
	return launch, nil
}

// OpenSocket makes the socket, or takes over the one that the daemon has bound.
func OpenSocket(launch *wire.Launch) (*socket.Socket, error) {
	base, name := rundir.Base(launch.Base), socket.Name(launch.ID)
	if launch.Socket == "" {
		CloseInherited(ReplyFD + 1)
		return socket.Listen(base, name)
	}
	syscall.CloseOnExec(SocketFD)
	CloseInherited(SocketFD + 1)
	return socket.Adopt(base, name, os.NewFile(SocketFD, launch.Socket), launch.Socket)
}

// FreeStdin replaces standard input, on which the launch came, by the null device.
func FreeStdin() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	return dup2(int(null.Fd()), 0)
}

// CloseInherited closes the descriptors from first on that this process inherited: locks
// and pipes whose end other processes wait for, and which the program must not have. Go
// opens all its own with close-on-exec, so those without it were inherited.
func CloseInherited(first int) {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // the system does not list them
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < first {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}
