package rig

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Inside returns what a function opens in a namespace: a socket stays there.
func Inside[V any](n *Namespace, open func() (V, error)) (opened V) {
	n.T.Helper()
	n.Do(func() (err error) {
		opened, err = open()
		return err
	})
	return opened
}

// Do calls a function in the namespace. Sockets that it opens stay there.
func (n *Namespace) Do(f func() error) {
	n.T.Helper()
	done := make(chan error)
	go func() {
		// The thread ends with the goroutine, unless it is the process's first, which
		// must not stay in the namespace: it comes back.
		runtime.LockOSThread()
		done <- func() error {
			here, err := os.Open("/proc/thread-self/ns/net")
			if err != nil {
				return err
			}
			defer here.Close()
			there, err := os.Open("/run/netns/" + n.Name)
			if err != nil {
				return err
			}
			defer there.Close()
			if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
				return os.NewSyscallError("setns", err)
			}
			defer unix.Setns(int(here.Fd()), unix.CLONE_NEWNET)
			return f()
		}()
	}()
	if err := <-done; err != nil {
		n.T.Fatal(err)
	}
}
