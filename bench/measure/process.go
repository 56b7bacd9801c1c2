//go:build linux

package measure

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns how long processes have computed, in all their threads.
func CPUTime(t *T, pids ...int) time.Duration {
	sum := time.Duration(0)
	for _, pid := range pids {
		// The clock of a process, to the nanosecond: clock_getcpuclockid(3). What proc(5)
		// says is in steps of 10 ms.
		const cpuClockSched = 2
		var ts unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|cpuClockSched), &ts); err != nil {
			t.Fatalf("CPU time of process %d: %v", pid, err)
		}
		sum += time.Duration(ts.Nano())
	}
	return sum
}

// Switches returns how often the threads of processes have waited and so given up the CPU (proc(5),
// voluntary_ctxt_switches). It does not count threads that have ended.
func Switches(pids ...int) (sum int) {
	for _, pid := range pids {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, status := range threads {
			b, _ := os.ReadFile(status) // the thread may have ended
			if found := voluntary.FindSubmatch(b); found != nil {
				n, _ := strconv.Atoi(string(found[1]))
				sum += n
			}
		}
	}
	return sum
}

var voluntary = regexp.MustCompile(`(?m)^voluntary_ctxt_switches:\s+(\d+)$`)

// Gone reports whether a process has ended. A zombie has no memory.
func Gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	return err != nil || bytes.HasPrefix(b, []byte("0 "))
}

// RSS returns the resident memory of a process, in bytes.
func RSS(t *T, pid int) int { return kilobytes(t, pid, "status", `VmRSS`) }

// PSS returns the memory of a process with its share of what it shares with other
// processes (proc(5), Pss), in bytes.
func PSS(t *T, pid int) int { return kilobytes(t, pid, "smaps_rollup", `Pss`) }

// Private returns the anonymous memory of a process, which is in no file (proc(5), Anonymous), in
// bytes. Private_Dirty would count what is not written yet of a program that was just built.
func Private(t *T, pid int) int { return kilobytes(t, pid, "smaps_rollup", `Anonymous`) }

// kilobytes returns a field of a file of proc(5), in bytes.
func kilobytes(t *T, pid int, file, field string) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + field + `:\s+(\d+) kB$`).FindSubmatch(b)
	if found == nil {
		t.Fatalf("no %s of process %d", field, pid)
	}
	kb, _ := strconv.Atoi(string(found[1]))
	return kb << 10
}

// Family returns a process and all its descendants.
func Family(pid int) []int {
	pids := []int{pid}
	for i := 0; i < len(pids); i++ {
		pids = append(pids, Children(pids[i])...)
	}
	return pids
}

// Children returns the children of a process.
func Children(pid int) (pids []int) {
	// Each thread lists those that it has started.
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(children)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// Descriptors and Threads return how many a process has.
func Descriptors(t *T, pid int) int { return entries(t, pid, "fd") }
func Threads(t *T, pid int) int     { return entries(t, pid, "task") }

func entries(t *T, pid int, dir string) int {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", pid, dir))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// Milliseconds returns a duration as a number.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
