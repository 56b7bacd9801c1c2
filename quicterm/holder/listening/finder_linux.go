package listening

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxSockets bounds the listening sockets of the machine that a look takes in, maxProcesses the processes of the
	// session, the youngest, and maxFiles their open files: a look is to take some milliseconds at most.
	maxSockets   = 1024
	maxProcesses = 256
	maxFiles     = 4096

	// maxEnvironments bounds the processes of other sessions that are asked where they come from, the highest ids first, and
	// maxEnvironment what is read of each, in bytes.
	maxEnvironments = 1024
	maxEnvironment  = 64 << 10

	// maxTable bounds what is read of a table of the kernel, whose rows have at most 200 bytes.
	maxTable = 200 * maxSockets
)

// A Finder finds the ports of a session. Its zero value is ready. It is not safe for concurrent use.
type Finder struct {
	// Mark is a variable with its value that only programs of the session have in their environment, or empty. By it those
	// are found that have begun a session of their own, as daemons do.
	Mark string

	proc    string                     // /proc; of a test another directory
	session func(pid int) (int, error) // getsid

	known map[string]bool // the sockets of the last look, by inode: whether they are the session's
}

// Ports returns the ports at which this account's processes of a session listen for connections to this machine by its
// name localhost, sorted. A session is named by its first process.
func (f *Finder) Ports(session int) []uint16 {
	if f.proc == "" {
		f.proc, f.session = "/proc", unix.Getsid
	}
	sockets := make(map[string]uint16)
	for _, table := range []string{"tcp", "tcp6"} {
		f.read(filepath.Join(f.proc, strconv.Itoa(session), "net", table), sockets)
	}
	known, unknown := make(map[string]bool), false
	for inode := range sockets {
		of, seen := f.known[inode]
		known[inode], unknown = of, unknown || !seen
	}
	f.known = known
	if unknown {
		f.findOwners(session)
	}
	var ports []uint16
	for inode, port := range sockets {
		if f.known[inode] {
			ports = append(ports, port)
		}
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	return ports[:min(len(ports), MaxPorts)]
}

// read adds the listening sockets of a table of the kernel, which come first there.
func (f *Finder) read(name string, sockets map[string]uint16) {
	table, err := os.Open(name)
	if err != nil {
		return
	}
	defer table.Close()
	uid := strconv.Itoa(os.Getuid())
	lines := bufio.NewScanner(io.LimitReader(table, maxTable))
	lines.Scan() // names of columns
	for lines.Scan() && len(sockets) < maxSockets {
		row := strings.Fields(lines.Text())
		if len(row) < 10 || row[3] != "0A" { // TCP_LISTEN
			return
		}
		address, port, _ := strings.Cut(row[1], ":")
		if n, err := strconv.ParseUint(port, 16, 16); err == nil && row[7] == uid && local(address) {
			sockets[row[9]] = uint16(n)
		}
	}
}

// local reports whether an address of a table, with the bytes of each word reversed, is any address or one of loopback.
func local(address string) bool {
	const mapped = "0000000000000000FFFF0000" // IPv4 in IPv6
	if a := strings.TrimPrefix(address, mapped); len(a) == 8 {
		return a == "00000000" || strings.HasSuffix(a, "7F")
	}
	return strings.Trim(address, "0") == "" || address == "00000000000000000000000001000000"
}

// findOwners marks the sockets that processes of the session have.
func (f *Finder) findOwners(session int) {
	left := maxFiles
	for _, pid := range f.processes(session) {
		dir := filepath.Join(f.proc, strconv.Itoa(pid), "fd")
		if left == 0 {
			return
		}
		for _, name := range names(dir, left) {
			left--
			target, _ := os.Readlink(filepath.Join(dir, name))
			inode, ok := strings.CutPrefix(target, "socket:[")
			if inode = strings.TrimSuffix(inode, "]"); !ok {
				continue
			}
			if _, listens := f.known[inode]; listens {
				f.known[inode] = true
			}
		}
	}
}

// processes returns those of a session, and those with its mark, the highest ids first: mostly the youngest.
func (f *Finder) processes(session int) (pids []int) {
	var all []int
	for _, name := range names(f.proc, -1) {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(b, a) })
	others := maxEnvironments
	for _, pid := range all {
		s, err := f.session(pid)
		switch {
		case len(pids) == maxProcesses:
			return pids
		case err != nil, s == 0: // of the kernel
		case s == session:
			pids = append(pids, pid)
		case others > 0 && f.Mark != "":
			environment, readable := f.environment(pid)
			if readable {
				others--
			}
			if bytes.Contains(environment, []byte("\x00"+f.Mark+"\x00")) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// environment returns the variables of a process of this account, each between zeros, as far as they are read. Root may
// read those of other accounts, too, which could make that wait.
func (f *Finder) environment(pid int) (variables []byte, readable bool) {
	process := filepath.Join(f.proc, strconv.Itoa(pid))
	var of unix.Stat_t
	if unix.Lstat(process, &of) != nil || int(of.Uid) != os.Geteuid() {
		return nil, false
	}
	file, err := os.Open(filepath.Join(process, "environ"))
	if err != nil {
		return nil, false
	}
	defer file.Close()
	b, _ := io.ReadAll(io.LimitReader(file, maxEnvironment))
	return append([]byte{0}, b...), true
}

// names returns at most n names of a directory, or all if n is negative.
func names(dir string, n int) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	all, _ := d.Readdirnames(n)
	return all
}
