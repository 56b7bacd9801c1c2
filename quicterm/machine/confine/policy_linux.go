//go:build linux && (amd64 || arm64)

package confine

import (
	"os"

	"golang.org/x/sys/unix"
)

// A rule allows a system call, or some of its uses. What has no rule is refused with EPERM.
type rule struct {
	call int

	// uses are those that are allowed: the call is, if each match of one of them holds. Nil allows all.
	uses []use

	// absent answers ENOSYS: the C library then makes another call, whose arguments the filter can see.
	absent bool
}

// A use is what arguments of a call must be.
type use []match

// A match holds if the lower half of an argument, masked, has a value. The kernel reads flags and int from that half.
type match struct {
	argument    int
	mask, value uint32
}

func is(argument, value int) match { return match{argument, 1<<32 - 1, uint32(value)} }

// without is the uses in which an argument has none of some flags, and with those in which it has all of them.
func without(argument int, flags uint32) []use { return []use{{{argument, flags, 0}}} }
func with(argument int, flags uint32) []use    { return []use{{{argument, flags, flags}}} }

// policy returns what a process in a cell may do: use the descriptors that it has. No rule opens a file or a socket,
// starts a program, or makes memory executable.
func policy() []rule {
	var rules []rule
	for _, call := range append(unconditional, more...) {
		rules = append(rules, rule{call: call})
	}
	return append(rules,
		rule{call: unix.SYS_MMAP, uses: without(2, unix.PROT_EXEC)},
		rule{call: unix.SYS_MPROTECT, uses: without(2, unix.PROT_EXEC)},
		// With this flag, a socket of TCP connects.
		rule{call: unix.SYS_SENDTO, uses: without(3, unix.MSG_FASTOPEN)},
		rule{call: unix.SYS_SENDMSG, uses: without(2, unix.MSG_FASTOPEN)},
		rule{call: unix.SYS_SENDMMSG, uses: without(3, unix.MSG_FASTOPEN)},
		rule{call: unix.SYS_SETSOCKOPT, uses: socketOptions()},
		rule{call: unix.SYS_FCNTL, uses: commands()},
		rule{call: unix.SYS_CLONE, uses: with(0, unix.CLONE_THREAD)}, // threads only
		rule{call: unix.SYS_CLONE3, absent: true},
		rule{call: unix.SYS_TGKILL, uses: []use{{is(0, os.Getpid())}}},
	)
}

// unconditional are the calls that Go's runtime and its network poller need on each machine, with any arguments; those
// that only one machine has are in more.
var unconditional = []int{
	// memory
	unix.SYS_BRK, unix.SYS_MADVISE, unix.SYS_MUNMAP, unix.SYS_MINCORE,
	// threads, time and signals
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_FUTEX, unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_GETUID,
	unix.SYS_GETEUID,
	unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_NANOSLEEP,
	unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_RESTART_SYSCALL,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_SCHED_YIELD,
	unix.SYS_SCHED_GETAFFINITY, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_MEMBARRIER, unix.SYS_TIMER_CREATE,
	unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE, unix.SYS_SETITIMER, unix.SYS_GETRANDOM, unix.SYS_UNAME,
	unix.SYS_SYSINFO,
	unix.SYS_GETRUSAGE,
	// open files
	unix.SYS_READ, unix.SYS_READV, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_CLOSE, unix.SYS_DUP, unix.SYS_DUP3,
	unix.SYS_FSTAT, unix.SYS_PIPE2, unix.SYS_EVENTFD2, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL,
	unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_PPOLL,
	// open sockets
	unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_GETPEERNAME, unix.SYS_GETSOCKNAME, unix.SYS_GETSOCKOPT,
	unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG, unix.SYS_SHUTDOWN,
}

// socketOptions are those that quic-go, Go's network package and the carriers set.
func socketOptions() (uses []use) {
	for _, option := range [][2]int{ // level and name
		{unix.SOL_SOCKET, unix.SO_RCVBUF}, {unix.SOL_SOCKET, unix.SO_KEEPALIVE}, {unix.SOL_SOCKET, unix.SO_LINGER},
		{unix.IPPROTO_IP, unix.IP_RECVTOS}, {unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS},
		{unix.IPPROTO_IP, unix.IP_PKTINFO}, {unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO},
		{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER}, {unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER},
		{unix.IPPROTO_UDP, unix.UDP_GRO},
		{unix.IPPROTO_TCP, unix.TCP_NODELAY}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT}, {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
		{unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT},
		{unix.IPPROTO_TCP, unix.TCP_CONGESTION},
	} {
		uses = append(uses, use{is(1, option[0]), is(2, option[1])})
	}
	return uses
}

func commands() (uses []use) {
	for _, command := range []int{unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL} {
		uses = append(uses, use{is(1, command)})
	}
	return uses
}
