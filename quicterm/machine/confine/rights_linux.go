package confine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
)

// Become gives this process, all its threads, the rights of an account in place of those of root, for good. After
// an error, the process must end.
func Become(c *syscall.Credential) error {
	uid, gid, groups := int(c.Uid), int(c.Gid), make([]int, len(c.Groups))
	for i, id := range c.Groups {
		groups[i] = int(id)
	}
	err := errors.Join(syscall.Setgroups(groups), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid))
	if err != nil {
		return fmt.Errorf("user id %d, group id %d: %w", uid, gid, err)
	}
	own, err := syscall.Getgroups()
	slices.Sort(own)
	slices.Sort(groups)
	if err != nil || !slices.Equal(slices.Compact(own), slices.Compact(groups)) ||
		os.Getuid() != uid || os.Geteuid() != uid || os.Getgid() != gid || os.Getegid() != gid || syscall.Setresuid(-1, 0, -1) == nil {
		return fmt.Errorf("this process does not have the rights of user id %d, group id %d and groups %d alone",
			uid, gid, groups)
	}
	return nil
}
