package memory

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Read returns the memory of the machine. All of it counts as available: the system
// compresses and pages out memory by itself.
func Read() (State, error) {
	total, err := unix.SysctlUint64("hw.memsize")
	return State{Total: total, Available: total}, err
}

// SetAdjust does nothing: the system has no adjustment.
func SetAdjust(int, Adjust) error { return nil }

// ReadAdjust returns 0: the system has no adjustment.
func ReadAdjust() (Adjust, error) { return 0, nil }

// ByAccount returns an error: it is not known.
func ByAccount(string, uint64) (map[uint32]uint64, error) { return nil, errors.ErrUnsupported }
