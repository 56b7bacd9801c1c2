package utmp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// terminalMajor is the number of the driver of terminals below /dev/pts.
const terminalMajor = 136

// If the end of a login cannot be recorded, as another program has locked the files, it is tried again after
// firstEndPause, and then after twice as long each time, up to lastEndPause. Then the next daemon does it.
const firstEndPause, lastEndPause = time.Minute, 32 * time.Minute

// Record records a login, and its end when that comes. It blocks until then or until ctx ends. A process of the account
// has named the terminal and the process: one must be of the account, and the end of the other must show.
func (r *Recorder) Record(ctx context.Context, l *Login) {
	owner, err := ownerOf(l.Terminal)
	if err == nil && owner != l.UID {
		err = fmt.Errorf("terminal %d belongs to user id %d", l.Terminal, owner)
	}
	var process *os.File
	if err == nil {
		process, err = openProcess(l.Process)
	}
	if err != nil {
		r.Warn("login is not recorded", "account", l.Account, "error", err)
		return
	}
	r.write(l, func() error { return r.Files.Begin(ctx, l, time.Now()) })
	r.follow(ctx, l, process)
}

// Follow records the end of a login that [Files.Living] has returned, as Record does.
func (r *Recorder) Follow(ctx context.Context, l *Login) {
	process, err := openProcess(l.Process)
	if err != nil {
		r.Warn("a login is taken for ended", "error", err)
	}
	r.follow(ctx, l, process)
}

// follow blocks until the process of a login is over, and records that; nil is one that is over. It returns before
// if ctx ends.
func (r *Recorder) follow(ctx context.Context, l *Login, process *os.File) {
	if process != nil {
		defer process.Close()
		if onTerminal(l.Process, l.Terminal) {
			awaitEnd(ctx, process)
		}
	}
	at := time.Now()
	for pause := firstEndPause; ctx.Err() == nil; pause *= 2 {
		err := r.write(l, func() error { return r.Files.End(ctx, l, at) })
		if !errors.Is(err, unix.EAGAIN) || pause > lastEndPause {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// write writes records, and logs the error that it returns.
func (r *Recorder) write(l *Login, write func() error) error {
	err := r.Within(write)
	if err != nil {
		r.Warn("login is not recorded", "account", l.Account, "error", err)
	}
	return err
}

// openProcess returns a descriptor of a process, or nil if the process has ended.
func openProcess(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	// PIDFD_NONBLOCK needs Linux 5.10.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "process"), nil
}

// awaitEnd blocks until a process has ended, or ctx ends. A process that cannot be awaited counts as ended: a record
// that ends early does less harm than one without an end.
func awaitEnd(ctx context.Context, process *os.File) {
	defer context.AfterFunc(ctx, func() { process.Close() })()
	raw, err := process.SyscallConn()
	if err != nil {
		return
	}
	raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}

// ownerOf returns the user id to which the terminal /dev/pts/n belongs.
func ownerOf(n uint32) (uid uint32, err error) {
	info, err := os.Lstat("/dev/pts/" + strconv.FormatUint(uint64(n), 10))
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Mode&syscall.S_IFMT != syscall.S_IFCHR ||
		unix.Major(stat.Rdev) != terminalMajor || unix.Minor(stat.Rdev) != n {
		return 0, fmt.Errorf("%s is no terminal", info.Name())
	}
	return stat.Uid, nil
}

// onTerminal reports whether a process has the controlling terminal /dev/pts/n, as proc_pid_stat(5) says.
func onTerminal(pid int, n uint32) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The name of the program, in parentheses, may contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 5 {
		return false
	}
	device, err := strconv.ParseInt(string(fields[4]), 10, 32)
	return err == nil && unix.Major(uint64(uint32(device))) == terminalMajor && unix.Minor(uint64(uint32(device))) == n
}
