package holder

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is how many bytes of a program's output wait in the kernel: four reads. A program that waits for
// each read costs more time to wake up than to copy what it writes.
const pipeSize = 256 << 10

// A growingPipe makes a pipe hold pipeSize, not the kernel's 64 KiB, when a program first writes faster than
// the holder reads. The kernel bounds the pipes of each user: those of programs that write little stay small.
type growingPipe struct {
	*os.File
	grown bool
}

func growing(pipe *os.File) io.ReadCloser { return &growingPipe{File: pipe} }

// Read takes a read of half of b for a sign that the pipe was full: pages that small writes fill in part hold
// at least that much.
func (p *growingPipe) Read(b []byte) (int, error) {
	n, err := p.File.Read(b)
	if !p.grown && n > 0 && n >= len(b)/2 {
		p.grown = true
		control(p.File, func(fd int) error { // fails if the user has too many pipes
			_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize)
			return err
		})
	}
	return n, err
}
