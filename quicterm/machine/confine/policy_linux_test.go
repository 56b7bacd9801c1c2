//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// answer returns what the policy says of a call: nil, EPERM or ENOSYS.
func answer(rules []rule, call int, args [6]uintptr) error {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.call == call })
	if i < 0 {
		return unix.EPERM
	}
	r := rules[i]
	if r.absent {
		return unix.ENOSYS
	}
	for _, u := range r.uses {
		if !slices.ContainsFunc(u, func(m match) bool { return uint32(args[m.argument])&m.mask != m.value }) {
			return nil
		}
	}
	if r.uses == nil {
		return nil
	}
	return unix.EPERM
}

// lastCall is above the numbers of all system calls.
const lastCall = 600

// untried are calls that would end the process or its thread if they are allowed, and uretprobe and uprobe, which the kernel
// lets through any filter.
var untried = append([]int{unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_RT_SIGRETURN}, probes...)

// A sample is a call with arguments that make it fail, if it is allowed, or do nothing.
type sample struct {
	call int
	args [6]uintptr
}

// samples returns each call with no sense in its arguments, and those with rules about their arguments also as each use
// allows it, and with each match of a use violated.
func samples(rules []rule) (all []sample) {
	nonsense := [6]uintptr{^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0)}
	for call := range lastCall {
		all = append(all, sample{call, nonsense})
	}
	all = append(all, sample{1<<30 | unix.SYS_GETPID, nonsense}) // of another calling convention
	for _, r := range rules {
		for _, u := range r.uses {
			allowed := nonsense
			for _, m := range u {
				allowed[m.argument] = uintptr(^m.mask | m.value)
			}
			all = append(all, sample{r.call, allowed})
			for _, m := range u {
				for bit := uint32(1); bit != 0; bit <<= 1 {
					if m.mask&bit != 0 {
						violated := allowed
						violated[m.argument] ^= uintptr(bit)
						all = append(all, sample{r.call, violated})
					}
				}
			}
		}
	}
	return slices.DeleteFunc(all, func(s sample) bool { return slices.Contains(untried, s.call) })
}

// The program of the filter answers each call as the policy says.
func TestFilter(t *testing.T) {
	rules := policy()
	for _, call := range untried[:3] {
		if answer(rules, call, [6]uintptr{}) != nil {
			t.Errorf("call %d is refused", call)
		}
	}
	vm, err := bpf.NewVM(program(rules))
	if err != nil {
		t.Fatal(err)
	}
	answers := map[int]error{answerAllow: nil, int(answerRefuse): unix.EPERM, int(answerAbsent): unix.ENOSYS}
	for _, s := range samples(rules) {
		data := make([]byte, 64) // struct seccomp_data, with words as the virtual machine reads them
		put := func(at int, value uint32) {
			data[at], data[at+1], data[at+2], data[at+3] = byte(value>>24), byte(value>>16), byte(value>>8), byte(value)
		}
		put(offsetNumber, uint32(s.call))
		put(offsetArch, arch)
		for i, arg := range s.args {
			put(offsetArgument+8*i, uint32(arg))
		}
		got, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		if want := answer(rules, s.call, s.args); answers[got] != want {
			t.Errorf("call %d with %x: %v, want %v", s.call, s.args, answers[got], want)
		}
	}
	other := make([]byte, 64) // a call of another machine's kind, such as i386
	if got, err := vm.Run(other); err != nil || uint32(got) != answerRefuse {
		t.Errorf("a call of another machine: %#x, %v", got, err)
	}
}

// tryCalls makes all of these calls in a cell, and returns those that the kernel does not answer as the policy says.
func tryCalls() (wrong error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	rules := policy()
	for _, s := range samples(rules) {
		a := s.args
		_, _, errno := unix.RawSyscall6(uintptr(s.call), a[0], a[1], a[2], a[3], a[4], a[5])
		switch want := answer(rules, s.call, a); {
		case want != nil && errno != want, want == nil && errno == unix.EPERM:
			wrong = errors.Join(wrong, fmt.Errorf("call %d with %x: %v, want %v", s.call, a, errno, want))
		}
	}
	return wrong
}

// A class is a kind of descriptor, made before the process enters the cell, and what can be done with it there.
type class struct {
	name string
	open func() int
	uses []trial
}

// A trial is what is tried with a descriptor, and its result; nil is success.
type trial struct {
	what string
	try  func(fd int) error
	want error
}

// need returns a descriptor, or ends the process.
func need(fd int, err error) int {
	if err != nil {
		fmt.Println("make a descriptor:", err)
		os.Exit(1)
	}
	return fd
}

func setInt(level, name, value int) func(int) error {
	return func(fd int) error { return unix.SetsockoptInt(fd, level, name, value) }
}

// raw returns an attempt at a call that begins with the descriptor.
func raw(call uintptr, args ...uintptr) func(int) error {
	return func(fd int) error {
		args := append(args, make([]uintptr, 5)...)
		if _, _, errno := unix.RawSyscall6(call, uintptr(fd), args[0], args[1], args[2], args[3], args[4]); errno != 0 {
			return errno
		}
		return nil
	}
}

// mapped returns an attempt to map memory, of a file unless the descriptor is -1, and to change its protection.
func mapped(flags, prot, then int) func(int) error {
	return func(fd int) error {
		b, err := unix.Mmap(fd, 0, os.Getpagesize(), prot, flags)
		if err != nil {
			return err
		}
		return unix.Mprotect(b, then)
	}
}

// classes returns what a cell is tried with. Most of them it never has: they are here for what they could do.
func classes() []class {
	receiver := need(unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0))
	abstract := &unix.SockaddrUnix{Name: fmt.Sprintf("@quicterm-test-%d", os.Getpid())}
	need(0, unix.Bind(receiver, abstract))
	received := func() error { _, _, err := unix.Recvfrom(receiver, make([]byte, 9), unix.MSG_DONTWAIT); return err }
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	need(0, err)
	_, err = net.Dial("tcp", listener.Addr().String())
	need(0, err)
	to := &unix.SockaddrInet4{Port: listener.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	parent := os.Getppid()
	pair := func(kind int) func() int {
		return func() int {
			fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
			need(0, err)
			unix.SetsockoptInt(fds[1], unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0)
			return fds[0]
		}
	}
	passing := trial{"pass a descriptor to an end that refuses it", func(fd int) error {
		return unix.Sendmsg(fd, []byte("x"), unix.UnixRights(0), nil, 0)
	}, unix.EPERM}
	if _, err := unix.GetsockoptInt(receiver, unix.SOL_SOCKET, unix.SO_PASSRIGHTS); err != nil {
		passing.want = nil // before Linux 6.16
	}
	refused := func(what string, try func(int) error) trial { return trial{what, try, unix.EPERM} }
	return []class{
		{"a unix socket for datagrams", pair(unix.SOCK_DGRAM), []trial{
			// Therefore a cell is given none.
			{"send to any socket", func(fd int) error { return errors.Join(unix.Sendto(fd, []byte("x"), 0, abstract), received()) }, nil},
			refused("connect", func(fd int) error { return unix.Connect(fd, abstract) }),
		}},
		{"a unix socket for packets", pair(unix.SOCK_SEQPACKET), []trial{
			{"send", func(fd int) error { return unix.Sendto(fd, []byte("x"), 0, nil) }, nil},
			{"send to any socket", func(fd int) error { unix.Sendto(fd, []byte("x"), 0, abstract); return received() }, unix.EAGAIN},
			passing,
		}},
		{"a unix socket of type stream", pair(unix.SOCK_STREAM), []trial{
			{"write", func(fd int) error { _, err := unix.Write(fd, []byte("x")); return err }, nil},
			refused("connect", func(fd int) error { return unix.Connect(fd, abstract) }),
			refused("take descriptors of others", setInt(unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 1)),
			refused("take credentials", setInt(unix.SOL_SOCKET, unix.SO_PASSCRED, 1)),
			passing,
		}},
		{"a socket of UDP", func() int { return need(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)) }, []trial{
			{"send", func(fd int) error { return unix.Sendto(fd, []byte("x"), 0, to) }, nil},
			{"ask for the address of packets", setInt(unix.IPPROTO_IP, unix.IP_PKTINFO, 1), nil},
			refused("connect", func(fd int) error { return unix.Connect(fd, to) }),
			refused("bind", func(fd int) error { return unix.Bind(fd, &unix.SockaddrInet4{}) }),
			refused("set options of the address family", setInt(unix.IPPROTO_IP, unix.IP_TTL, 1)),
			refused("share its port", setInt(unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)),
			refused("join a group", setInt(unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, 1)),
			refused("run a filter in the kernel", setInt(unix.SOL_SOCKET, unix.SO_ATTACH_BPF, 1)),
			refused("keep busy polling", setInt(unix.SOL_SOCKET, unix.SO_BUSY_POLL, 1)),
		}},
		{"a socket of TCP", func() int { return need(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)) }, []trial{
			refused("connect", func(fd int) error { return unix.Connect(fd, to) }),
			refused("send, and connect by it", func(fd int) error { return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, to) }),
			refused("send a message, and connect by it", func(fd int) error { return unix.Sendmsg(fd, []byte("x"), nil, to, unix.MSG_FASTOPEN) }),
			refused("bind", func(fd int) error { return unix.Bind(fd, &unix.SockaddrInet4{}) }),
			refused("listen", func(fd int) error { return unix.Listen(fd, 1) }),
			refused("load a protocol", setInt(unix.IPPROTO_TCP, unix.TCP_ULP, 1)),
			refused("repair", setInt(unix.IPPROTO_TCP, unix.TCP_REPAIR, 1)),
			{"set a timeout", setInt(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 1), nil},
		}},
		{"a listener of TCP", func() int { f, err := listener.(*net.TCPListener).File(); need(0, err); return int(f.Fd()) }, []trial{
			{"accept", func(fd int) error { _, _, err := unix.Accept4(fd, 0); return err }, nil},
		}},
		{"a pipe", func() int { fds := make([]int, 2); need(0, unix.Pipe2(fds, 0)); return fds[1] }, []trial{
			{"write", func(fd int) error { _, err := unix.Write(fd, []byte("x")); return err }, nil},
			refused("enlarge", func(fd int) error { _, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 1<<20); return err }),
			refused("get signals of", func(fd int) error { _, err := unix.FcntlInt(uintptr(fd), unix.F_SETOWN, parent); return err }),
			refused("splice", raw(unix.SYS_SPLICE)),
			refused("vmsplice", raw(unix.SYS_VMSPLICE)),
		}},
		{"a file in memory", func() int {
			fd := need(unix.MemfdCreate("x", 0))
			need(0, unix.Ftruncate(fd, int64(os.Getpagesize())))
			return fd
		}, []trial{
			{"map", mapped(unix.MAP_PRIVATE, unix.PROT_READ, unix.PROT_READ), nil},
			refused("map executable", mapped(unix.MAP_PRIVATE, unix.PROT_READ|unix.PROT_EXEC, 0)),
			refused("make executable", mapped(unix.MAP_PRIVATE, unix.PROT_READ, unix.PROT_READ|unix.PROT_EXEC)),
			refused("run", raw(unix.SYS_EXECVEAT, uintptr(unsafe.Pointer(new(byte))), 0, 0, unix.AT_EMPTY_PATH)),
			refused("change its size", func(fd int) error { return unix.Ftruncate(fd, 1) }),
			refused("seal", func(fd int) error {
				_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
				return err
			}),
		}},
		{"no file", func() int { return -1 }, []trial{
			{"map memory", mapped(unix.MAP_PRIVATE|unix.MAP_ANON, unix.PROT_READ|unix.PROT_WRITE, unix.PROT_READ), nil},
			refused("map executable memory", mapped(unix.MAP_PRIVATE|unix.MAP_ANON, unix.PROT_WRITE|unix.PROT_EXEC, 0)),
			refused("make memory executable", mapped(unix.MAP_PRIVATE|unix.MAP_ANON, unix.PROT_WRITE, unix.PROT_EXEC)),
		}},
		{"a file of root", func() int { return need(unix.Open("/etc/shadow", unix.O_RDONLY, 0)) }, []trial{
			{"read", func(fd int) error { _, err := unix.Read(fd, make([]byte, 1)); return err }, nil},
			refused("change its mode", func(fd int) error { return unix.Fchmod(fd, 0o777) }),
			refused("open anew", raw(unix.SYS_OPENAT, uintptr(unsafe.Pointer(new(byte))), unix.O_RDWR)),
			refused("lock", func(fd int) error { return unix.Flock(fd, unix.LOCK_EX) }),
		}},
		{"a directory", func() int { return need(unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)) }, []trial{
			refused("list", func(fd int) error { _, err := unix.Getdents(fd, make([]byte, 4096)); return err }),
			refused("enter", func(fd int) error { return unix.Fchdir(fd) }),
			refused("open a file in", func(fd int) error { _, err := unix.Openat(fd, "etc/passwd", unix.O_RDONLY, 0); return err }),
			refused("open a file in, in another way", func(fd int) error { _, err := unix.Openat2(fd, "etc/passwd", &unix.OpenHow{}); return err }),
		}},
		{"a terminal", func() int { return need(unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)) }, []trial{
			refused("type into", func(fd int) error { return unix.IoctlSetInt(fd, unix.TIOCSTI, 0) }),
		}},
		{"a process", func() int { return need(unix.PidfdOpen(parent, 0)) }, []trial{
			refused("signal", func(fd int) error { return unix.PidfdSendSignal(fd, 0, nil, 0) }),
			refused("take its descriptors", func(fd int) error { _, err := unix.PidfdGetfd(fd, 0, 0); return err }),
			refused("enter its namespaces", func(fd int) error { return unix.Setns(fd, unix.CLONE_NEWNET) }),
		}},
		{"a listener of unix sockets", func() int {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: abstract.Name + "-listener", Net: "unix"})
			need(0, err)
			f, err := l.File()
			need(0, err)
			return int(f.Fd())
		}, []trial{
			refused("listen again", func(fd int) error { return unix.Listen(fd, 1) }),
			refused("take credentials of what comes", setInt(unix.SOL_SOCKET, unix.SO_PASSCRED, 1)),
		}},
		{"a socket of netlink", func() int { return need(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)) }, []trial{
			refused("bind", func(fd int) error { return unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) }),
			refused("join a group", setInt(unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, 1)),
		}},
		{"a raw socket", func() int { return need(unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)) }, []trial{
			refused("connect", func(fd int) error { return unix.Connect(fd, to) }),
			refused("write headers", setInt(unix.IPPROTO_IP, unix.IP_HDRINCL, 1)),
		}},
		{"an event poll", func() int { return need(unix.EpollCreate1(0)) }, []trial{
			{"add", func(fd int) error { return unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, receiver, &unix.EpollEvent{}) }, nil},
		}},
		{"a counter of events", func() int { return need(unix.Eventfd(0, 0)) }, []trial{
			{"count", func(fd int) error { _, err := unix.Write(fd, make([]byte, 8)); return err }, nil},
		}},
		{"a timer", func() int { return need(unix.TimerfdCreate(unix.CLOCK_MONOTONIC, 0)) }, []trial{refused("set", raw(unix.SYS_TIMERFD_SETTIME))}},
		{"a namespace", func() int { return need(unix.Open("/proc/self/ns/net", unix.O_RDONLY, 0)) }, []trial{
			refused("enter", func(fd int) error { return unix.Setns(fd, 0) }),
			refused("ask for its parent", func(fd int) error { return unix.IoctlSetInt(fd, unix.NS_GET_PARENT, 0) }),
		}},
		{"a ring of system calls", func() int {
			fd, _, _ := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(new([128]byte))), 0)
			return int(fd) // -1 where the kernel has none
		}, []trial{refused("enter", raw(unix.SYS_IO_URING_ENTER)), refused("register", raw(unix.SYS_IO_URING_REGISTER))}},
		{"a handler of page faults", func() int {
			fd, _, _ := unix.Syscall(unix.SYS_USERFAULTFD, 0, 0, 0)
			return int(fd) // -1 where the kernel has none
		}, []trial{refused("handle", func(fd int) error { return unix.IoctlSetInt(fd, 0xc018aa3f, 0) })}},
		{"a watch of files", func() int { return need(unix.InotifyInit1(0)) }, []trial{
			refused("watch", func(fd int) error { _, err := unix.InotifyAddWatch(fd, "/", unix.IN_ALL_EVENTS); return err }),
		}},
	}
}

// tryDescriptors tries what can be done with descriptors that were opened before the process entered the cell, and returns
// what differs from the table.
func tryDescriptors(all []class, opened []int) (wrong error) {
	for i, c := range all {
		for _, u := range c.uses {
			if err := u.try(opened[i]); !errors.Is(err, u.want) {
				wrong = errors.Join(wrong, fmt.Errorf("%s: %s: %v, want %v", c.name, u.what, err, u.want))
			}
		}
	}
	return wrong
}
