package spawn

import "golang.org/x/sys/unix"

// dup2 makes newfd the same file as oldfd.
func dup2(oldfd, newfd int) error { return unix.Dup3(oldfd, newfd, 0) }
