package program

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/nonblock"
)

const getTermios, setTermios = unix.TCGETS, unix.TCSETS

// processName returns the name that the kernel shows of a process.
func processName(pid int) ([]byte, error) {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return bytes.TrimSuffix(name, []byte("\n")), err
}

// Directory returns the working directory of the first process in the foreground, or of the program's
// if that is of another account, or an empty string.
func (p *Process) Directory() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped || p.terminal == nil {
		return ""
	}
	var dir string
	control(p.terminal.File, func(fd int) error {
		group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		if err == nil && group > 0 {
			dir, err = os.Readlink("/proc/" + strconv.Itoa(group) + "/cwd")
		}
		return err
	})
	if dir == "" {
		dir, _ = os.Readlink("/proc/" + strconv.Itoa(p.pid) + "/cwd")
	}
	return dir
}

// pipeSize is how many bytes of a program's output wait in the kernel: four reads. A program that waits for
// each read costs more time to wake up than to copy what it writes.
const pipeSize = 256 << 10

// A growingPipe makes a pipe hold pipeSize, not the kernel's 64 KiB, when a program first writes faster than
// the holder reads. The kernel bounds the pipes of each user: those of programs that write little stay small.
type growingPipe struct {
	*os.File
	conn  *nonblock.Conn
	grown bool
}

func growing(pipe *os.File) io.ReadCloser {
	conn, err := nonblock.New(pipe)
	if err != nil {
		return pipe
	}
	return &growingPipe{File: pipe, conn: conn}
}

// Read takes a read of half of b for a sign that the pipe was full: pages that small writes fill in part hold
// at least that much.
func (p *growingPipe) Read(b []byte) (int, error) {
	n, err := p.conn.Read(b)
	if !p.grown && n > 0 && n >= len(b)/2 {
		p.grown = true
		control(p.File, func(fd int) error { // fails if the user has too many pipes
			_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize)
			return err
		})
	}
	return n, err
}
