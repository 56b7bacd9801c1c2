package main

import (
	"bytes"
	"io"
	"os"
	"syscall"
	"testing"
)

// More than a pipe holds gets through to its end, and who else has the pipe open still blocks.
func TestPolled(t *testing.T) {
	t.Parallel()
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r, stdout := os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "stdout")
	defer r.Close()
	w := polled(stdout)
	if _, ok := w.(*polledPipe); !ok {
		t.Errorf("polled returns a %T", w)
	}
	flags, _, err := syscall.Syscall(syscall.SYS_FCNTL, stdout.Fd(), syscall.F_GETFL, 0)
	if err != 0 || flags&syscall.O_NONBLOCK != 0 {
		t.Errorf("flags of the pipe: %#x, %v; want no %#x", flags, err, syscall.O_NONBLOCK)
	}
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	written := make(chan error, 1)
	go func() {
		_, err := w.Write(sent)
		w.Close()
		written <- err
	}()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("read %d bytes, %v; want those %d written", len(got), err, len(sent))
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
