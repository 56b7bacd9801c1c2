//go:build !linux && !darwin && !js

package terminal

import (
	"errors"
	"os/exec"
)

// A Dialog gives a program a terminal of its own. This system has none to give.
type Dialog struct{}

// NewDialog returns an error.
func NewDialog(*TTY) (*Dialog, error) { return nil, errors.ErrUnsupported }

// Attach does nothing.
func (*Dialog) Attach(*exec.Cmd) {}

// Relay does nothing.
func (*Dialog) Relay(func(line string, shown bool)) {}

// Mute does nothing.
func (*Dialog) Mute() {}

// Close does nothing.
func (*Dialog) Close() error { return nil }
