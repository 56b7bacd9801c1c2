package memory

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Read returns the memory of the machine or, if that is less, of the container: the least
// of all control groups that this process is in.
func Read() (State, error) { return read(os.DirFS("/")) }

func read(root fs.FS) (State, error) {
	info, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return State{}, err
	}
	const kib = 1 << 10
	s := State{Total: field(info, "MemTotal:") * kib, Available: field(info, "MemAvailable:") * kib}
	if s.Total == 0 {
		return State{}, fmt.Errorf("no MemTotal in /proc/meminfo")
	}
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return s, nil // a kernel without control groups
	}
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path, see cgroups(7)
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		v := version2
		if parts[1] != "" {
			if v = version1; !slices.Contains(strings.Split(parts[1], ","), "memory") {
				continue
			}
		}
		// A container may see its group under the path that it has outside. The path of a group
		// outside the container begins with "/..", and must not lead above the mount.
		for dir := path.Join(v.mount, path.Clean("/"+parts[2])); ; dir = path.Dir(dir) {
			s = v.within(root, dir, s)
			if dir == v.mount {
				break
			}
		}
	}
	return s, nil
}

// A groupVersion is a version of control groups.
type groupVersion struct {
	mount, limit, usage string
	reclaimable         string // in memory.stat
}

var (
	version1 = groupVersion{
		"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
	}
	version2 = groupVersion{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}
)

func (v groupVersion) within(root fs.FS, dir string, s State) State {
	limit, ok := readNumber(root, path.Join(dir, v.limit))
	if !ok || limit >= s.Total {
		return s
	}
	s.Total = limit
	if usage, ok := readNumber(root, path.Join(dir, v.usage)); ok {
		stat, _ := fs.ReadFile(root, path.Join(dir, "memory.stat"))
		usage -= min(usage, field(stat, v.reclaimable))
		s.Available = min(s.Available, limit-min(limit, usage))
	}
	return s
}

// readNumber reads a file with a number. It reports false if there is none, as in a file with the word max.
func readNumber(root fs.FS, name string) (uint64, bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil
}

// field returns the number behind a name at the start of a line, or 0.
func field(content []byte, name string) uint64 {
	for line := range bytes.Lines(content) {
		words := bytes.Fields(line)
		if len(words) >= 2 && string(words[0]) == name {
			n, _ := strconv.ParseUint(string(words[1]), 10, 64)
			return n
		}
	}
	return 0
}

// protection is the oom_score_adj (proc(5)) of a protected process: the kernel ends it only
// when others that take half of the memory are gone. It is not beyond all: a daemon that
// leaks must not cost the machine, and sessions outlive it.
const protection = -500

// Protect makes the kernel end other processes first when memory is short, unless somebody
// has chosen how likely it ends this one. It needs CAP_SYS_RESOURCE.
func Protect() error {
	if adjust, err := adjustment(); err != nil || adjust != 0 {
		return err
	}
	return setAdjustment(os.Getpid(), protection)
}

// Unprotect takes the protection from a child process that has just been started and has
// inherited it, for good: it cannot get it back.
func Unprotect(pid int) error {
	if adjust, err := adjustment(); err != nil || adjust >= 0 {
		return err
	}
	return setAdjustment(pid, 0)
}

func adjustment() (int, error) {
	b, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(b)))
}

func setAdjustment(pid, adjust int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(strconv.Itoa(adjust)), 0)
}

// ByAccount returns how much memory of their own the processes of each account take whose executable has the given
// name, without the first bytes of each. The system decides which processes this one can see.
func ByAccount(name string, first uint64) (map[uint32]uint64, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	sums := make(map[uint32]uint64)
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		status, err := os.ReadFile(path.Join("/proc", e.Name(), "status"))
		if err != nil {
			continue // it has ended
		}
		line, _, _ := bytes.Cut(status, []byte("\n"))
		if string(bytes.TrimSpace(bytes.TrimPrefix(line, []byte("Name:")))) == name {
			own := field(status, "RssAnon:") << 10
			sums[uint32(field(status, "Uid:"))] += own - min(own, first)
		}
	}
	return sums, nil
}
