//go:build linux && (amd64 || arm64)

package confine

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (seccomp(2)), of machines that store the lower half of a word first.
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetArgument = 16 // the lower half of the first one; each has 8 bytes
)

// Answers of the filter.
const (
	answerAllow  = 0x7fff0000                      // SECCOMP_RET_ALLOW
	answerRefuse = 0x00050000 | uint32(unix.EPERM) // SECCOMP_RET_ERRNO
	answerAbsent = 0x00050000 | uint32(unix.ENOSYS)
)

// allowed are the system calls that Go's runtime and its network poller need on each machine; those
// that only one machine has are in more. Neither has any that opens a file or a socket, or starts a
// program: open, socket, connect, bind, execve, ptrace.
var allowed = []int{
	// memory
	unix.SYS_BRK, unix.SYS_MADVISE, unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MUNMAP, unix.SYS_MINCORE,
	// threads, time and signals
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_FUTEX, unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_GETUID, unix.SYS_GETEUID,
	unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_NANOSLEEP,
	unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_RESTART_SYSCALL,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_SCHED_YIELD,
	unix.SYS_SCHED_GETAFFINITY, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_MEMBARRIER, unix.SYS_TIMER_CREATE,
	unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE, unix.SYS_SETITIMER, unix.SYS_GETRANDOM, unix.SYS_UNAME, unix.SYS_SYSINFO,
	unix.SYS_GETRUSAGE,
	// open files
	unix.SYS_READ, unix.SYS_READV, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_CLOSE, unix.SYS_DUP, unix.SYS_DUP3,
	unix.SYS_FCNTL, unix.SYS_FSTAT, unix.SYS_PIPE2, unix.SYS_EVENTFD2, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL,
	unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_PPOLL,
	// open sockets
	unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_GETPEERNAME, unix.SYS_GETSOCKNAME, unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT,
	unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG, unix.SYS_SHUTDOWN,
}

// senders are the system calls that send, and which of their arguments has the flags. With one of them, a
// socket of TCP connects.
var senders = []struct{ number, flags int }{{unix.SYS_SENDTO, 3}, {unix.SYS_SENDMSG, 2}, {unix.SYS_SENDMMSG, 3}}

// program returns the filter.
func program() []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		bpf.RetConstant{Val: answerRefuse},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
	}
	for _, number := range append(allowed, more...) {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: 1}, bpf.RetConstant{Val: answerAllow})
	}
	for _, call := range senders {
		p = append(p,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(call.number), SkipTrue: 4},
			bpf.LoadAbsolute{Off: uint32(offsetArgument + 8*call.flags), Size: 4},
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.MSG_FASTOPEN, SkipTrue: 1},
			bpf.RetConstant{Val: answerAllow},
			bpf.RetConstant{Val: answerRefuse},
		)
	}
	// The C library falls back to clone, whose flags can be looked at: threads only.
	p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1}, bpf.RetConstant{Val: answerAbsent})
	p = append(p,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE, SkipTrue: 4},
		bpf.LoadAbsolute{Off: offsetArgument, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.CLONE_THREAD, SkipTrue: 1},
		bpf.RetConstant{Val: answerAllow},
		bpf.RetConstant{Val: answerRefuse},
	)
	// Signals to this process only.
	p = append(p,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_TGKILL, SkipTrue: 3},
		bpf.LoadAbsolute{Off: offsetArgument, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(os.Getpid()), SkipTrue: 1},
		bpf.RetConstant{Val: answerAllow},
	)
	return append(p, bpf.RetConstant{Val: answerRefuse})
}

// seccomp sets the filter for all threads, and no_new_privs with it, which this thread has.
func seccomp() error {
	raw, err := bpf.Assemble(program())
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("seccomp: thread %d has another filter", thread)
	}
	return nil
}
