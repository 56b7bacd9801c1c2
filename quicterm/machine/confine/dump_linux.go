package confine

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// NoDumps keeps the memory of this process, which has private keys, from processes that could trace it and from core
// files. A child that starts within the returned function inherits the limit of core files that this process had.
func NoDumps() (within func(start func() error) error, err error) {
	var had syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_CORE, &had); err != nil {
		return nil, fmt.Errorf("limit of core files: %w", err)
	}
	// Both: a child that takes the rights of an account while it shares this process's memory makes that dumpable
	// again, as far as fs.suid_dumpable says (proc_sys_fs(5)).
	forbid := func() error {
		return errors.Join(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
			syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{Max: had.Max}))
	}
	if err := forbid(); err != nil {
		return nil, fmt.Errorf("keep this process from core files: %w", err)
	}
	var mu sync.Mutex
	return func(start func() error) error {
		mu.Lock()
		defer mu.Unlock()
		defer forbid() // it has worked before
		if err := syscall.Setrlimit(unix.RLIMIT_CORE, &had); err != nil {
			return fmt.Errorf("limit of core files: %w", err)
		}
		return start()
	}, nil
}
