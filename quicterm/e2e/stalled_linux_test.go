package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// usage returns how many bytes of memory a process has, and how long it has worked.
func usage(t *testing.T, pid int) (memory int, busy time.Duration) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third on
	number := func(i int) int {
		n, err := strconv.Atoi(fields[i-3])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const tick = 10 * time.Millisecond
	return number(24) * os.Getpagesize(), time.Duration(number(14)+number(15)) * tick
}

// holders returns the processes that the daemon has started.
func holders(t *testing.T, h *rig.Host) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if fields[1] == strconv.Itoa(h.Daemon.Process.Pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Clients that read nothing, never acknowledge and ask for answers without end take
// little memory and, once all waits for them, no time. Others do not notice.
func TestClientsThatStall(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "healthy")
	from := h.Log.Len()
	var lanes []*lane
	for i := range 8 {
		l, _ := attach(t, h, &wire.Attach{PTY: i%2 == 0, Command: "yes", Size: [4]uint16{80, 24}})
		lanes = append(lanes, l)
		go func() { // as much as it takes
			one := frame(0, 0x81, "\x01")
			ping := bytes.Repeat(one, 1000)
			for range 100 {
				if _, err := l.link.Write(ping); err != nil {
					return
				}
				for range 10 {
					l.link.SendDatagram(ping[:50*len(one)])
				}
			}
			for seq := uint64(1); seq < 10_000; seq++ {
				l.link.Write(frame(seq, session.Skip, ""))
			}
		}()
	}
	for range 20 {
		start := time.Now()
		x.Run("echo st''ill here", "still here")
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("another waits for %v", d)
		}
		time.Sleep(100 * time.Millisecond)
	}
	pids := append(holders(t, h), h.Daemon.Process.Pid)
	if len(pids) != 8+2 {
		t.Fatalf("%d processes", len(pids))
	}
	limit := 100 << 20
	if raceEnabled {
		limit *= 5
	}
	before := make(map[int]time.Duration)
	for _, pid := range pids {
		memory, busy := usage(t, pid)
		before[pid] = busy
		t.Logf("process %d: %d MB, %v", pid, memory>>20, busy)
		if memory > limit {
			t.Errorf("a process takes %d bytes", memory)
		}
	}
	time.Sleep(2 * time.Second)
	for _, pid := range pids {
		if _, busy := usage(t, pid); busy-before[pid] > 500*time.Millisecond {
			t.Errorf("a process works for %v of 2 s for who has stalled", busy-before[pid])
		}
	}
	for _, l := range lanes {
		l.link.Close()
	}
	x.Run("echo go''es on", "goes on")
	for _, l := range lanes {
		if lines := complaints(h, from, l.name); len(lines) > 1 {
			t.Errorf("%d lines in the log:\n%s", len(lines), strings.Join(lines, ""))
		}
	}
}
