package holder

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is how many bytes of a program's output wait in the kernel: four reads. A program that waits for
// each read costs more time to wake up than to copy what it writes.
const pipeSize = 256 << 10

// enlarge makes a pipe hold more than the kernel's 64 KiB, if the user may still have that much.
func enlarge(pipe *os.File) {
	control(pipe, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize)
		return err
	})
}
