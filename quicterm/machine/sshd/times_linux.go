package sshd

import "syscall"

// stampTimes returns when a file and its inode were changed, in nanoseconds.
func stampTimes(s *syscall.Stat_t) (modified, changed int64) { return s.Mtim.Nano(), s.Ctim.Nano() }
