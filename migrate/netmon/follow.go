//go:build (linux && !android) || darwin || dragonfly || freebsd || netbsd || openbsd

package netmon

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// follow calls changed after each message of the kernel that matters, and after
// messages that were lost. It closes the socket when the context ends.
func follow(ctx context.Context, socket *os.File, matters func([]byte) bool, changed func()) error {
	ended := make(chan error, 1)
	go func() {
		b := make([]byte, 64<<10) // a longer message is cut, which matters
		for {
			n, err := socket.Read(b)
			if err != nil && !errors.Is(err, unix.ENOBUFS) {
				ended <- err
				return
			}
			if err != nil || matters(b[:n]) {
				changed()
			}
		}
	}()
	select {
	case <-ctx.Done():
		socket.Close()
		<-ended
		return nil
	case err := <-ended:
		socket.Close()
		return err
	}
}
