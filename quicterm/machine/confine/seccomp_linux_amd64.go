package confine

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

var more = []int{unix.SYS_ARCH_PRCTL, unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_SELECT}
