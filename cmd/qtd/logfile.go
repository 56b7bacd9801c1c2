//go:build linux || darwin

package main

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
)

// maxLog is the size in bytes above which a log is put aside: a person can read it, and
// the two that an account has at once fill no disk.
const maxLog = 1 << 20

// A logFile is a log in the own directory of an account. Several processes may append to
// it. One goroutine at a time may write.
type logFile struct {
	name string
	file *os.File
}

// openLog opens a log of the account that runs this process. base is the setting
// runtime_dir.
func openLog(base, name string) (*logFile, error) {
	dir, err := rundir.Base(base).Make()
	if err != nil {
		return nil, err
	}
	l := &logFile{name: filepath.Join(dir, name)}
	if l.file, err = appendTo(l.name); err != nil {
		return nil, err
	}
	l.rotate()
	return l, nil
}

func appendTo(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

// Write appends to the log.
func (l *logFile) Write(b []byte) (int, error) {
	l.rotate()
	return l.file.Write(b)
}

// rotate puts a log that is too long aside, unless another process has, and begins a new
// one. A log whose name is gone is emptied instead: it must not grow where nobody sees it.
func (l *logFile) rotate() {
	info, err := l.file.Stat()
	if err != nil || info.Size() <= maxLog {
		return
	}
	if named, err := os.Lstat(l.name); err == nil && os.SameFile(named, info) {
		os.Rename(l.name, l.name+".old")
	}
	f, err := appendTo(l.name)
	if err != nil {
		l.file.Truncate(0)
		return
	}
	l.file.Close()
	l.file = f
}
