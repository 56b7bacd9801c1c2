//go:build !linux

package pam

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A Session cannot be opened on this system.
type Session struct{}

const errSystem = Absent("only Linux has a su that opens sessions for the daemon")

// Find returns an error.
func Find(context.Context, func(*exec.Cmd) error) (su string, err error) { return "", errSystem }

// Check returns an error.
func Check(context.Context, string, string) error { return errSystem }

// OpenArgs is not used.
func OpenArgs(string, string, *syscall.Credential, []string) []string { return nil }

// Open returns an error.
func Open([]string, ...int) error { return errSystem }

// Run returns an error.
func Run() error { return errSystem }

// Adopt returns an error.
func Adopt(string, *slog.Logger) (*Session, error) { return nil, errSystem }

// Await returns an error.
func (*Session) Await(time.Time) error { return errSystem }

// Start returns an error.
func (*Session) Start(*Program, ...*os.File) (pid int, err error) { return 0, errSystem }

// Close does nothing.
func (*Session) Close() {}

// Over returns nil.
func (*Session) Over() <-chan struct{} { return nil }

// Wait returns the status of a program that has not run.
func (*Session) Wait() (status byte, killed syscall.Signal) { return 255, 0 }
