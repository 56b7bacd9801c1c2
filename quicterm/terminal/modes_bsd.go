//go:build darwin || freebsd

package terminal

import "golang.org/x/sys/unix"

// Requests for the modes of a terminal. The last one drops what was typed and not read.
const getModes, setModes, setModesFlush = unix.TIOCGETA, unix.TIOCSETA, unix.TIOCSETAF
