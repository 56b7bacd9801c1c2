package program

import (
	"cmp"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/nonblock"
)

const (
	// maxLooked bounds the processes of the foreground that are looked at, and the threads of all of them: a build may
	// have hundreds, none of which reads.
	maxLooked = 64

	// listInterval is the time between two lists of the machine's processes: a script may start a program that reads.
	listInterval = 100 * time.Millisecond
)

// members are the processes of the group in the foreground.
type members struct {
	group  int
	pids   []int // the first of the group, then the youngest first
	listed time.Time
	reader string // the directory of the thread that was last found to wait for input
}

// list finds the members again if the group is another one, or that was not done lately.
func (m *members) list(now time.Time, group int) {
	if group == m.group && now.Sub(m.listed) < listInterval {
		return
	}
	*m = members{group: group, pids: []int{group}, listed: now}
	proc, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	var others []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != group {
			if g, err := unix.Getpgid(pid); err == nil && g == group {
				others = append(others, pid)
			}
		}
	}
	slices.SortFunc(others, func(a, b int) int { return cmp.Compare(b, a) })
	m.pids = append(m.pids, others[:min(len(others), maxLooked-1)]...)
}

// read reports whether a member waits for input from the terminal, which has a name, or else whether one sleeps of
// which this account may see no more.
func (m *members) read(now time.Time, group int, terminal string) (reads, unknown bool) {
	if m.reader != "" && group == m.group {
		if reads, _ := readsIn(m.reader, terminal); reads {
			return true, false
		}
	}
	m.list(now, group)
	looked := 0
	for _, pid := range m.pids {
		dirs := []string{"/proc/" + strconv.Itoa(pid)} // that of the first thread too
		dirs = append(dirs, otherThreads(dirs[0], pid)...)
		for _, dir := range dirs {
			if looked++; looked > maxLooked {
				return false, unknown
			}
			found, hidden := readsIn(dir, terminal)
			if found {
				m.reader = dir
				return true, false
			}
			unknown = unknown || hidden
		}
	}
	return false, unknown
}

// otherThreads returns the directories of the threads of a process, except the first.
func otherThreads(dir string, pid int) (dirs []string) {
	dir += "/task"
	var info unix.Stat_t
	if err := unix.Stat(dir, &info); err != nil || info.Nlink <= 3 {
		return nil // each thread has a link
	}
	threads, _ := os.ReadDir(dir)
	for _, t := range threads {
		if t.Name() != strconv.Itoa(pid) {
			dirs = append(dirs, dir+"/"+t.Name())
		}
	}
	return dirs
}

// maxFile is how much of a file in /proc is read.
const maxFile = 4 << 10

// readFile reads a file in /proc from a position, without the costs of a file that may block.
func readFile(name string, at int64, n uint64) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, min(n, maxFile))
	read, err := unix.Pread(fd, b, at)
	return b[:max(read, 0)], err
}

// readsIn reports whether the thread with a directory in /proc waits for input, or sleeps in what this account may not
// see.
func readsIn(dir, terminal string) (reads, hidden bool) {
	call, err := readFile(dir+"/syscall", 0, maxFile)
	if err != nil {
		return false, (err == unix.EACCES || err == unix.EPERM) && sleeps(dir)
	}
	s := sleep{
		call: string(call),
		memory: func(address, n uint64) []byte {
			if address > math.MaxInt64 {
				return nil
			}
			b, _ := readFile(dir+"/mem", int64(address), n)
			return b
		},
		epoll: func(fd uint64) string {
			b, _ := readFile(dir+"/fdinfo/"+strconv.FormatUint(fd, 10), 0, maxFile)
			return string(b)
		},
		terminal: func(fd uint64) bool {
			name, _ := os.Readlink(dir + "/fd/" + strconv.FormatUint(fd, 10))
			return name == terminal || name == "/dev/tty"
		},
	}
	return s.onTerminal(runtime.GOARCH) && sleeps(dir), false
}

// sleeps reports whether a thread waits for something: it does not run, and is not stopped.
func sleeps(dir string) bool {
	stat, _ := readFile(dir+"/stat", 0, maxFile)
	_, state, _ := strings.Cut(string(stat[max(0, strings.LastIndexByte(string(stat), ')')):]), ") ")
	return strings.HasPrefix(state, "S")
}

// Taken reports whether the program has read all complete input from the terminal.
func (p *Process) Taken() bool {
	taken := false
	p.onTerminal(func(fd uintptr) {
		// The queue is that of the program's end. Opened for a moment, it delays no end of the output.
		const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_NONBLOCK | unix.O_CLOEXEC
		end, _, err := syscall.Syscall(unix.SYS_IOCTL, fd, unix.TIOCGPTPEER, flags)
		if err != 0 {
			return
		}
		defer unix.Close(int(end))
		// Poll waits for what was written and has not passed the line discipline, unlike TIOCINQ, which counts less
		// than a program may have asked for.
		if !nonblock.Readable(end) {
			n, err := nonblock.IoctlGetInt(end, unix.TIOCINQ)
			taken = err == nil && n == 0
		}
	})
	return taken
}

// Reads reports whether the program in the foreground waits for input from the terminal. A process of another account
// is taken to do so if it sleeps, and the terminal reads a line that it does not show and was quiet.
func (p *Process) Reads(now time.Time, quiet bool) bool {
	group, secret := 0, false
	p.onTerminal(func(fd uintptr) {
		termios, err := nonblock.IoctlGetTermios(fd, getTermios)
		if err != nil {
			return
		}
		secret = flagsOf(termios).Secret()
		if g, err := nonblock.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil {
			group = g
		}
	})
	if group <= 0 {
		return false
	}
	reads, unknown := p.members.read(now, group, p.tty)
	return reads || unknown && secret && quiet
}

// onTerminal calls f with the terminal's descriptor while the program runs.
func (p *Process) onTerminal(f func(fd uintptr)) {
	p.mu.Lock()
	over := p.reaped || p.terminal == nil
	p.mu.Unlock()
	if !over {
		p.terminal.raw.Control(f)
	}
}
