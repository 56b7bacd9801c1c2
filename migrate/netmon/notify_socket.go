//go:build (linux && !android) || darwin || dragonfly || freebsd || netbsd || openbsd

package netmon

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// readMessages reads the kernel's messages from a socket. It calls changed after each relevant one, and after
// messages that the kernel dropped. It closes the socket when the context ends.
func readMessages(ctx context.Context, socket *os.File, relevant func([]byte) bool, changed func()) error {
	ended := make(chan error, 1)
	go func() {
		b := make([]byte, 64<<10) // a longer message is truncated, which makes it relevant
		for {
			n, err := socket.Read(b)
			if err != nil && !errors.Is(err, unix.ENOBUFS) { // ENOBUFS: messages were dropped
				ended <- err
				return
			}
			if err != nil || relevant(b[:n]) {
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
