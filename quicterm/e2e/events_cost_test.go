//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// processorTime returns how long a process has run.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	return time.Duration(user+system) * 10 * time.Millisecond
}

// What qt events costs: a thousand events a second, and a hundred sessions in which nothing happens. It takes minutes.
func TestEventsCost(t *testing.T) {
	if os.Getenv("QUICTERM_EVENTS_COST") == "" {
		t.Skip("QUICTERM_EVENTS_COST is not set")
	}
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	const seconds, idle = 10, 99
	driven(t, h, "busy", fmt.Sprintf("read x; for i in $(seq %d); do for j in 0 1 2 3 4 5 6 7 8 9; do "+
		"for k in 0 1 2 3 4 5 6 7 8 9; do printf '\\033]9;%%s\\007' \"$i$j$k\"; done; done; sleep 0.07; done; exit 0", seconds*10))
	r := readEvents(t, h, p.Addr(), filepath.Join(t.TempDir(), "events"), "--since", "/dev/null")
	r.until("busy waits")
	drive(t, h, "send", "--enter", "busy", "")
	begun := time.Now()
	events := r.until("busy exited")
	took := time.Since(begun)
	notified := 0
	for _, e := range events {
		if e.Event == "notification" {
			notified++
		}
	}
	wantNumbers(t, events)
	t.Logf("%d notifications of %d in %v, %.0f a second; qt events took %v of a processor", notified, seconds*1000, took,
		float64(notified)/took.Seconds(), processorTime(t, r.cmd.Process.Pid))
	if notified != seconds*1000 {
		t.Error("notifications are missing")
	}

	for i := range idle {
		driven(t, h, fmt.Sprint("s", i), quiet)
	}
	r.until(fmt.Sprintf("s%d prompt", idle-1))
	time.Sleep(20 * time.Second)
	daemon := func() (sum time.Duration) {
		for _, pid := range h.Processes() {
			sum += processorTime(t, pid)
		}
		return sum
	}
	holders := func() (sum time.Duration) {
		for _, pid := range h.Children() {
			sum += processorTime(t, pid)
		}
		return sum
	}
	before := []time.Duration{processorTime(t, r.cmd.Process.Pid), daemon(), holders()}
	const rest = 60 * time.Second
	time.Sleep(rest)
	after := []time.Duration{processorTime(t, r.cmd.Process.Pid), daemon(), holders()}
	t.Logf("with %d idle sessions, in %v: qt events %v, the daemon %v, all holders %v", idle, rest,
		after[0]-before[0], after[1]-before[1], after[2]-before[2])
}
