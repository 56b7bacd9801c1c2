package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// stderrFile returns the file that standard error was opened as, or nothing if it is none.
func stderrFile() string {
	info, err := os.Stderr.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	name, err := os.Readlink("/proc/self/fd/2")
	if err != nil || strings.HasSuffix(name, " (deleted)") {
		return ""
	}
	return name
}

// reopenStderr makes standard error the file with a name that it had before, if that is another one now: a program
// has put the log aside. Without a name it does nothing.
func reopenStderr(name string) error {
	if name == "" {
		return nil
	}
	open, err := os.Stderr.Stat()
	if named, nameErr := os.Stat(name); err == nil && nameErr == nil && os.SameFile(open, named) {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW, 0o640)
	if err != nil {
		return fmt.Errorf("open the log again: %w", err)
	}
	defer f.Close()
	return os.NewSyscallError("dup3", syscall.Dup3(int(f.Fd()), int(os.Stderr.Fd()), 0))
}
