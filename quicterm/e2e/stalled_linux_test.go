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
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Clients that read nothing, never acknowledge and send pings without end cost bounded
// memory and, once they are blocked, no CPU time. Another session stays responsive.
func TestStalledClients(t *testing.T) {
	h := newHostAlone(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "healthy")
	start := h.Log.Len()
	var stalled []*rawClient
	for i := range 8 {
		c, _ := attachRaw(t, h, &wire.Attach{PTY: i%2 == 0, Command: "yes", Size: wire.Size{Cols: 80, Rows: 24}})
		stalled = append(stalled, c)
		go flood(c)
	}
	respond := func() {
		t.Helper()
		sent := time.Now()
		x.Run("echo st''ill here", "still here")
		if d := time.Since(sent); d > rig.Patience/2 {
			t.Errorf("the healthy session answers after %v", d)
		}
	}
	for range 20 {
		respond()
	}
	want := len(h.Processes()) + 9 // 8 stalled holders and a healthy one
	var pids []int
	for until := time.Now().Add(rig.Patience); len(pids) != want; time.Sleep(20 * time.Millisecond) {
		if pids = append(h.Children(), h.Daemon.Process.Pid); len(pids) != want && time.Now().After(until) {
			t.Fatalf("%d processes, want %d: 8 stalled holders, a healthy one and the daemon", len(pids), want)
		}
	}
	awaitIdle(t, pids, respond)

	limit := 100 << 20
	if raceEnabled {
		limit *= 5
	}
	for _, pid := range pids {
		if memory, _ := usage(t, pid); memory > limit {
			t.Errorf("process %d has %d MB of memory, want at most %d", pid, memory>>20, limit>>20)
		}
	}
	for _, c := range stalled {
		c.conn.Close()
	}
	respond()
	for _, c := range stalled {
		if lines := warnings(h, start, c.logName); len(lines) > 1 {
			t.Errorf("%d lines in the log, want at most 1:\n%s", len(lines), strings.Join(lines, ""))
		}
	}
}

// flood sends pings and skips on stream and datagrams until the daemon blocks it or
// closes the connection.
func flood(c *rawClient) {
	ping := frame(0, 0x81, "\x01")
	pings := bytes.Repeat(ping, 1000)
	for range 100 {
		if _, err := c.conn.Write(pings); err != nil {
			return
		}
		for range 10 {
			c.conn.SendDatagram(pings[:50*len(ping)])
		}
	}
	for seq := uint64(1); seq < 10_000; seq++ {
		c.conn.Write(frame(seq, wire.Skip, ""))
	}
}

// awaitIdle waits until every process uses less than a quarter of a core over two
// consecutive intervals. It calls between after each interval.
func awaitIdle(t *testing.T, pids []int, between func()) {
	t.Helper()
	const interval = 500 * time.Millisecond
	last := make(map[int]time.Duration)
	idle := 0
	for deadline := time.Now().Add(3 * rig.Patience); idle < 2; idle++ {
		var busiest time.Duration
		for _, pid := range pids {
			_, used := usage(t, pid)
			busiest = max(busiest, used-last[pid])
			last[pid] = used
		}
		if busiest > interval/4 {
			idle = -1
		}
		if time.Now().After(deadline) {
			t.Fatalf("a process still uses %v of CPU time in %v", busiest, interval)
		}
		time.Sleep(interval)
		between()
	}
}

// usage returns the resident memory of a process in bytes, and its CPU time.
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
