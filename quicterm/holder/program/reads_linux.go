package program

import (
	"bytes"
	"cmp"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	mu sync.Mutex // of each look

	group  int
	pids   []int // the first of the group, then the youngest first
	listed time.Time
	reader reader    // the thread that was last found to wait for input
	worked time.Time // when none was found last
}

// list finds the members again if the group is another one, or that was not done lately.
func (m *members) list(now time.Time, group int) {
	if group == m.group && now.Sub(m.listed) < listInterval {
		return
	}
	m.begin(group)
	m.listed = now
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

// begin begins to look at another group, of which nothing but its first process is known.
func (m *members) begin(group int) {
	m.group, m.pids, m.listed, m.reader = group, []int{group}, time.Time{}, reader{}
}

// read returns how a member waits for input from the terminal, which has a name. If none does, it reports whether one
// sleeps of which this account may see no more.
func (m *members) read(now time.Time, group int, terminal string) (w wait, unknown bool) {
	if group != m.group {
		m.begin(group)
		m.reader = reader{group, "/proc/" + strconv.Itoa(group)} // mostly it is the first: others are looked for if not
	}
	if m.reader.dir != "" {
		if w, _ := readsIn(m.reader.dir, terminal); w != waitsNot {
			return m.reader.beside(w), false
		}
	}
	m.list(now, group)
	looked := 0
	for _, pid := range m.pids {
		for _, dir := range threads(pid) {
			if looked++; looked > maxLooked {
				return waitsNot, unknown
			}
			w, hidden := readsIn(dir, terminal)
			if w != waitsNot {
				m.reader = reader{pid, dir}
				return m.reader.beside(w), false
			}
			unknown = unknown || hidden
		}
	}
	return waitsNot, unknown
}

// A reader is a thread that waits for input, with its directory in /proc.
type reader struct {
	pid int
	dir string
}

// beside returns how a reader waits in view of the other threads of its process, which may print without input.
func (r reader) beside(w wait) wait {
	if w < waitsAlone {
		return w
	}
	for i, dir := range threads(r.pid) {
		if dir == r.dir {
			continue
		}
		call, _ := readFile(dir+"/syscall", 0, maxFile)
		other := sleep{call: string(call)}
		if i == maxLooked || !other.idle(runtime.GOARCH) {
			return waitsForMore
		}
	}
	return w
}

// threads returns the directories of the threads of a process, the first one's first.
func threads(pid int) []string {
	dir := "/proc/" + strconv.Itoa(pid)
	return append([]string{dir}, otherThreads(dir, pid)...)
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

// readsIn returns how the thread with a directory in /proc waits for input, or whether it sleeps in what this account
// may not see.
func readsIn(dir, terminal string) (w wait, hidden bool) {
	call, err := readFile(dir+"/syscall", 0, maxFile)
	if err != nil {
		return waitsNot, (err == unix.EACCES || err == unix.EPERM) && sleeps(dir)
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
	if w := s.onTerminal(runtime.GOARCH); w != waitsNot && sleeps(dir) {
		return w, false
	}
	return waitsNot, false
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

// unknownTime is how long the terminal must be still before a process of another account counts as waiting.
const unknownTime = 50 * time.Millisecond

// Reads reports whether the program in the foreground waits for input from the terminal, which has been still for a
// time. What may go on without input, as it waits for something else too, does so after selfTime; a shell that edits a
// line, at once. A process of another account does if it sleeps, and the terminal reads a line that it does not show.
func (p *Process) Reads(now time.Time, still time.Duration) bool {
	secret := false
	p.onTerminal(func(fd uintptr) {
		if termios, err := nonblock.IoctlGetTermios(fd, getTermios); err == nil {
			secret = flagsOf(termios).Secret()
		}
	})
	group := p.group()
	if group <= 0 {
		return false
	}
	p.mu.Lock()
	shell := group == p.foreground.group && shells[p.foreground.context]
	p.mu.Unlock()
	p.members.mu.Lock()
	defer p.members.mu.Unlock()
	switch w, unknown := p.members.read(now, group, p.tty); {
	case w == waitsAlone, w == waitsForMore && shell:
		return true
	case w == waitsNot:
		p.members.worked = now
		return unknown && secret && still >= unknownTime
	}
	return min(still, now.Sub(p.members.worked)) >= selfTime
}

// Foreground returns the name of the first process in the foreground of the terminal, or of the youngest there if that
// has ended, as the first of a pipeline may, and when it was started.
func (p *Process) Foreground() (name string, started time.Time) {
	group := p.group()
	if group <= 0 {
		return "", started
	}
	if name, started = processOf(group); name != "" {
		return name, started
	}
	p.members.mu.Lock()
	defer p.members.mu.Unlock()
	p.members.list(time.Now(), group)
	for _, pid := range p.members.pids {
		if name, started = processOf(pid); name != "" {
			break
		}
	}
	return name, started
}

// processOf returns the name of a process that has not ended, and when it was started.
func processOf(pid int) (name string, started time.Time) {
	stat, err := readFile("/proc/"+strconv.Itoa(pid)+"/stat", 0, maxFile)
	begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if err != nil || begin < 0 || end < begin {
		return "", started
	}
	const state, start = 0, 19 // proc_pid_stat(5) counts them from 3
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) <= start || fields[state] == "Z" {
		return "", started
	}
	ticks, err := strconv.ParseInt(fields[start], 10, 64)
	var up unix.Timespec
	if err == nil && unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) == nil {
		const tick = 10 * time.Millisecond // USER_HZ
		started = time.Now().Add(time.Duration(ticks)*tick - time.Duration(up.Nano()))
	}
	return string(stat[begin+1 : end]), started
}
