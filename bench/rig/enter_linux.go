package rig

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Do calls a function in the namespace: sockets that it opens stay there.
func (n *Namespace) Do(f func() error) {
	n.T.Helper()
	done := make(chan error)
	go func() {
		// The thread ends with the goroutine, and with it that it is elsewhere.
		runtime.LockOSThread()
		done <- func() error {
			there, err := os.Open("/run/netns/" + n.Name)
			if err != nil {
				return err
			}
			defer there.Close()
			if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
				return os.NewSyscallError("setns", err)
			}
			return f()
		}()
	}()
	if err := <-done; err != nil {
		n.T.Fatal(err)
	}
}
