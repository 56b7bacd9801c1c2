package monitor

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

	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/machine/utmp"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// terminalMajor is the number of the driver of terminals below /dev/pts.
const terminalMajor = 136

// If the end of a login cannot be recorded, as another program has locked the files, it is tried again after
// firstEndPause, and then after twice as long each time, up to lastEndPause. Then the next daemon does it.
const firstEndPause, lastEndPause = time.Minute, 32 * time.Minute

// recordsLogins reports whether logins are recorded.
func (s *Sessions) recordsLogins() bool {
	return s.loginFiles != nil && s.settings().LoginRecords == "on"
}

// recordLogin records the login of a session that was just started, and its end when that comes.
func (s *Sessions) recordLogin(a *account.Account, started wire.Started, client privsep.Path) {
	if !s.recordsLogins() || started.Process == 0 {
		return
	}
	l := &utmp.Login{
		Terminal: started.Terminal, Process: int(started.Process), Account: a.Name, UID: a.UID, Client: client.Client.Addr(),
	}
	s.census.mu.Lock() // see finish
	defer s.census.mu.Unlock()
	if s.life.Err() != nil {
		return
	}
	s.work.Go(func() {
		s.contain(s.log, func() error {
			// A process of the account has named the terminal: it must be one of the account.
			owner, err := ownerOf(l.Terminal)
			if err == nil && owner != a.UID {
				err = fmt.Errorf("terminal %d belongs to user id %d", l.Terminal, owner)
			}
			// It has named the process too: one whose end cannot be awaited would have a record for ever.
			var process *os.File
			if err == nil {
				process, err = openProcess(l.Process)
			}
			if err != nil {
				s.loginLog.Limited(time.Now(), s.log, "login is not recorded", "account", a.Name, "error", err)
				return nil
			}
			s.writeLogin(l, func() error { return s.loginFiles.Begin(s.life, l, time.Now()) })
			s.followLogin(l, process)
			return nil
		})
	})
}

// followLogins records the ends of logins that an earlier daemon has recorded, until ctx ends.
func (s *Sessions) followLogins(ctx context.Context) error {
	if s.recordsLogins() {
		logins, err := s.loginFiles.Living(ctx)
		if err != nil {
			s.log.Warn("the logins of before are not known", "error", err)
		}
		for _, l := range logins {
			s.work.Go(func() {
				s.contain(s.log, func() error {
					process, err := openProcess(l.Process)
					if err != nil {
						s.loginLog.Limited(time.Now(), s.log, "a login is taken for ended", "error", err)
					}
					s.followLogin(&l, process)
					return nil
				})
			})
		}
	}
	<-ctx.Done()
	return nil
}

// followLogin blocks until the process of a login is over, and records that; nil is one that is over. It returns before
// if the daemon ends.
func (s *Sessions) followLogin(l *utmp.Login, process *os.File) {
	if process != nil {
		defer process.Close()
		if onTerminal(l.Process, l.Terminal) {
			awaitEnd(s.life, process)
		}
	}
	at := time.Now()
	for pause := firstEndPause; s.life.Err() == nil; pause *= 2 {
		err := s.writeLogin(l, func() error { return s.loginFiles.End(s.life, l, at) })
		if !errors.Is(err, unix.EAGAIN) || pause > lastEndPause {
			return
		}
		select {
		case <-time.After(pause):
		case <-s.life.Done():
		}
	}
}

// writeLogin writes records, with the mounts of the system: to those of the daemon's unit nothing can be
// written. It logs the error that it returns.
func (s *Sessions) writeLogin(l *utmp.Login, write func() error) error {
	var err error
	if s.outside {
		err = systemd.DoOutside(write)
	} else {
		err = write()
	}
	if err != nil {
		s.loginLog.Limited(time.Now(), s.log, "login is not recorded", "account", l.Account, "error", err)
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
	if !ok || stat.Mode&syscall.S_IFMT != syscall.S_IFCHR || unix.Major(stat.Rdev) != terminalMajor || unix.Minor(stat.Rdev) != n {
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
