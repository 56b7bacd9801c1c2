package holder

import (
	"os"

	"golang.org/x/sys/unix"
)

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(b), err
}

// dup2 makes newfd the same file as oldfd.
func dup2(oldfd, newfd int) error { return unix.Dup3(oldfd, newfd, 0) }
