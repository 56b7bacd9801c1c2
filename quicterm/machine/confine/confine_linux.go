package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Namespaces are what a process that is to be confined may be cloned with, best first: containers may have no right
// to the first. In namespaces of its own it sees no mount and no network device, also if a check of the kernel fails.
var Namespaces = []uintptr{
	unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS, unix.CLONE_NEWNS, 0,
}

// maxFiles bounds the open files of the process: each connection has up to three.
const maxFiles = 1 << 16

// A Cell says what a process has left.
type Cell struct {
	// UID and GID are the user id and the only group id of the process. They should be those of no other process.
	UID, GID uint32
	// Root is an empty directory that only root can change.
	Root string
	// Mounts marks a process with a mount namespace of its own, from Namespaces.
	Mounts bool
}

// Enter confines this process, all its threads. It must run as root, and once. Missing are limits that
// this kernel does not have, in words. After an error, the process must end.
func (c *Cell) Enter() (missing []error, err error) {
	if c.UID == 0 || c.GID == 0 {
		return nil, errors.New("the user id and the group id of a cell cannot be those of root")
	}
	_ = time.Now().String() // it reads the file of the time zone, once
	if err := c.empty(); err != nil {
		return nil, err
	}
	for _, limit := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_NOFILE, maxFiles}, {unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
	} {
		if err := lower(limit.resource, limit.value); err != nil {
			return nil, fmt.Errorf("limit %d: %w", limit.resource, err)
		}
	}
	if err := Become(&syscall.Credential{Uid: c.UID, Gid: c.GID}); err != nil {
		return nil, err
	}
	if err := c.filter(); err != nil {
		missing = append(missing, err)
	}
	if _, err := os.Open("/etc/passwd"); err == nil {
		return nil, errors.New("files can still be opened")
	}
	return missing, nil
}

func lower(resource int, value uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil {
		return err
	}
	limit.Max = min(limit.Max, value)
	limit.Cur = limit.Max
	return syscall.Setrlimit(resource, (*syscall.Rlimit)(&limit)) // Go's own: it keeps what it has seen of NOFILE
}

// empty makes an empty directory the root of this process, in which nothing can be made.
func (c *Cell) empty() error {
	if c.Mounts {
		if err := c.pivot(); err == nil {
			return nil
		}
	}
	if err := unix.Chroot(c.Root); err != nil {
		return fmt.Errorf("empty root directory: %w", err)
	}
	return unix.Chdir("/")
}

// pivot replaces all mounts of this process by an empty file system.
func (c *Cell) pivot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	err := unix.Mount("none", c.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=555,nr_inodes=1")
	if err != nil {
		return err
	}
	if err := unix.Chdir(c.Root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	const flags = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	return unix.Mount("", "/", "", flags, "")
}

// filter forbids new privileges and most system calls, to all threads.
func (c *Cell) filter() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	err := seccomp()
	if err != nil { // the filter would have brought it to the other threads
		syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	}
	return err
}
