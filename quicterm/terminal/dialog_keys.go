//go:build linux || darwin

package terminal

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// keys writes what the user types to w, unseen, until stop is called. Keys that send signals do
// so. If one of them stops this process, again is called when it continues.
func (t *TTY) keys(w io.Writer, again func()) (stop func()) {
	fd := int(t.in.Fd())
	old, err := unix.IoctlGetTermios(fd, getModes)
	if err != nil {
		return func() {}
	}
	take := func() {
		quiet := *old
		quiet.Lflag &^= unix.ICANON | unix.ECHO | unix.ECHONL
		quiet.Cc[unix.VMIN], quiet.Cc[unix.VTIME] = 1, 0
		unix.IoctlSetTermios(fd, setModesFlush, &quiet) // as ssh: what was typed before is no answer
	}
	give := func() { unix.IoctlSetTermios(fd, setModes, old) }
	stopped, continued := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTSTP)
	take()
	wake, end, err := os.Pipe()
	if err != nil {
		signal.Stop(stopped)
		give()
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer wake.Close()
		b := make([]byte, maxQuestion)
		for readable(fd, int(wake.Fd())) {
			n, err := unix.Read(fd, b)
			if n > 0 {
				w.Write(b[:n])
			}
			if n == 0 || err != nil && err != unix.EINTR && err != unix.EAGAIN {
				return
			}
		}
	})
	wg.Go(func() {
		for {
			select {
			case <-stopped:
				give()
				signal.Notify(continued, syscall.SIGCONT)
				syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
				<-continued
				signal.Stop(continued)
				take()
				again()
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		end.Close()
		wg.Wait()
		signal.Stop(stopped)
		give()
	}
}

// readable waits until fd can be read. It returns false when wake can.
func readable(fd, wake int) bool {
	for {
		var set unix.FdSet
		set.Set(fd)
		set.Set(wake)
		if _, err := unix.Select(max(fd, wake)+1, &set, nil, nil, nil); err == nil {
			return !set.IsSet(wake)
		} else if err != unix.EINTR {
			return false
		}
	}
}

// hidesInput reports whether the program of a terminal does not have shown what is typed.
func hidesInput(tty *os.File) bool {
	modes, err := modesOf(tty)
	return err == nil && modes.Lflag&(unix.ECHO|unix.ICANON) == unix.ICANON
}

// copyModes gives a terminal the modes of another one. It shows what is typed, and changes nothing
// of what a program writes, because that would divide it.
func copyModes(to, from *os.File) {
	modes, err := modesOf(from)
	if err != nil {
		return
	}
	modes.Lflag |= unix.ECHO | unix.ICANON | unix.ISIG
	modes.Oflag &^= unix.OPOST
	if c, err := to.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { unix.IoctlSetTermios(int(fd), setModes, modes) })
	}
}

func modesOf(tty *os.File) (modes *unix.Termios, err error) {
	c, err := tty.SyscallConn()
	if err != nil {
		return nil, err
	}
	closed := c.Control(func(fd uintptr) { modes, err = unix.IoctlGetTermios(int(fd), getModes) })
	return modes, errors.Join(closed, err)
}
