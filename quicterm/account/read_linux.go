package account

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readAs reads a file on a thread that has the rights of the account.
func (a *Account) readAs(name string, groups []uint32) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	done := make(chan result)
	go func() {
		// The thread is never unlocked, so it ends with this goroutine: no other
		// code runs with its ids.
		runtime.LockOSThread()
		if err := a.become(groups); err != nil {
			done <- result{err: fmt.Errorf("act as %s: %w", a.Name, err)}
			return
		}
		content, err := a.readStrict(name)
		done <- result{content, err}
	}()
	r := <-done
	return r.content, r.err
}

// become gives this thread, and no other, the account's rights over files.
func (a *Account) become(groups []uint32) error {
	if err := setThreadGroups(groups); err != nil {
		return err
	}
	if err := unix.Setfsgid(int(a.GID)); err != nil {
		return err
	}
	if err := unix.Setfsuid(int(a.UID)); err != nil {
		return err
	}
	// These calls report no failure: ask which ids are in force.
	if uid, _ := unix.SetfsuidRetUid(-1); uid != int(a.UID) {
		return unix.EPERM
	}
	if gid, _ := unix.SetfsgidRetGid(-1); gid != int(a.GID) {
		return unix.EPERM
	}
	return nil
}

// setThreadGroups sets the supplementary groups of this thread only: package
// syscall sets those of all threads.
func setThreadGroups(groups []uint32) error {
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); errno != 0 {
		return errno
	}
	return nil
}
