package holder

import (
	"os"

	"golang.org/x/sys/unix"
)

// setTerminal gives a new terminal the modes that differ from the kernel's:
// erasing a character that takes several bytes.
func setTerminal(tty *os.File) error {
	return control(tty, func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, unix.TIOCGETA)
		if err != nil {
			return err
		}
		modes.Iflag |= unix.IUTF8
		return unix.IoctlSetTermios(fd, unix.TIOCSETA, modes)
	})
}
