//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func sessionCommand(running *measurements) *cobra.Command {
	var only string
	c := &cobra.Command{
		Use:   "session",
		Short: "Measure a session at rest and at work: memory, traffic, throughput, connecting, coming back",
		Long:  "Measure a session at rest and at work. Takes about five minutes.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return running.runRows(c.OutOrStdout(), only, [][]row{
				{{"ring append, 4 KiB frames", ">= 60 % of copy and CRC-32C", measureAppend}},
				{{"replay of 64 MiB to a loopback client", ">= 200 MB/s, or 80 % of a bare stream", measureReplay}},
				{{"key echo on loopback, added to a bare terminal's", "< 1 ms median", measureEcho}},
				{{"connect to prompt at 100 ms", "<= 1/2 of ssh", measureConnect}},
				{{"key echo after kill -9 and restart of the daemon", "<= 1 s after it listens", measureRestart}},
				{
					{"1000 idle sessions, 25 s keepalive", "< 5 % of a core", measureThousand},
					{"idle session, memory", "holder < 14 MiB, client < 20 MiB, daemon < 200 KB more", measureIdleMemory},
					{"idle session, wire", "<= 30 B/s at 5 s, <= 8 B/s at 25 s", measureIdleWire},
					{"socket folder removed, daemon restarted", "found within 120 s", measureFolder},
				},
			})
		},
	}
	c.Flags().StringVar(&only, "only", "", "measure only what has this `text` in its name")
	return c
}

// measureAppend runs the benchmarks of the ring's append, and of the least that
// anybody could do: copying the same bytes and computing their CRC.
func measureAppend(m *measurement) (string, bool) {
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", "RingAppend/.*/4096", "-count", "3",
		"github.com/quicterm/quicterm/buffer").Output()
	if err != nil {
		m.Fatal(err)
	}
	best := map[string]float64{}
	for _, found := range regexp.MustCompile(`RingAppend/(\w+)/4096\S*\s.*\s(\S+) MB/s`).FindAllStringSubmatch(string(out), -1) {
		speed, _ := strconv.ParseFloat(found[2], 64)
		best[found[1]] = max(best[found[1]], speed)
	}
	ring, bare := best["append"], best["bare"]
	if bare == 0 {
		m.Fatalf("no figures in %q", out)
	}
	return fmt.Sprintf("%.0f of %.0f MB/s: %.0f %%", ring, bare, 100*ring/bare), ring >= 0.6*bare
}

// measureReplay has a client take over a session that has printed as much as it
// keeps. It is in this process, as the client of the bare stream is.
func measureReplay(m *measurement) (string, bool) {
	best, bare := 0.0, 0.0
	for range 3 {
		best = max(best, replayOnce(m))
		bare = max(bare, bareThroughput(m))
	}
	return fmt.Sprintf("%.0f MB/s, a bare stream %.0f: %.0f %%", best/1e6, bare/1e6, 100*best/bare),
		best >= 200e6 || best >= 0.8*bare
}

func replayOnce(m *measurement) float64 {
	const size = 60 << 20
	h := m.host(nil)
	x := h.Shell(h.Addr, "-s", "full")
	x.Run("cd "+h.Dir+"; mkfifo go done; stty -opost", "mkfifo")
	x.Send(fmt.Sprintf("read x < go; head -c %d /dev/zero | tr '\\0' x; echo > done; cat\r~d", size))
	x.Exit()
	if out, err := h.QT("connect", fmt.Sprintf("cd %s; echo > go; cat done", h.Dir)).CombinedOutput(); err != nil {
		m.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &stopwatch{size: size, done: cancel}
	session, err := newClient(m, h, configs.DefaultClient()).Attach(ctx, &wire.Attach{Mode: wire.ModeAttach, Session: "full", PTY: true}, quicterm.Streams{Stdout: out})
	if err != nil {
		m.Fatal(err)
	}
	if _, err := session.Run(ctx); !errors.Is(err, quicterm.ErrLeft) {
		m.Fatal(err)
	}
	return size / out.took.Seconds()
}

// A stopwatch takes the time from the first to the last byte that is written to it.
type stopwatch struct {
	size, written int
	done          func()
	start         time.Time
	took          time.Duration
}

func (s *stopwatch) Write(b []byte) (int, error) {
	if s.written == 0 {
		s.start = time.Now()
	}
	if s.written += len(b); s.written >= s.size && s.took == 0 {
		s.took = time.Since(s.start)
		s.done()
	}
	return len(b), nil
}

// echoTimes types keys one after the other and returns how long each takes to
// appear.
func echoTimes(x *rig.Terminal, keys int) []time.Duration {
	var times []time.Duration
	for i := range keys {
		key := string(rune('a' + i%26))
		start := time.Now()
		x.Send(key)
		x.Expect(key)
		times = append(times, time.Since(start))
	}
	return times
}

// measureEcho types at a raw terminal and through a session.
func measureEcho(m *measurement) (string, bool) {
	const keys = 300
	h := m.host(nil)
	bare := rig.Open(m, exec.Command("cat"))
	through := rig.Open(m, h.Via(h.Addr, "connect", []string{"-t"}, "echo ready; cat"))
	through.Expect("ready\r\n")
	echoTimes(bare, 20)
	echoTimes(through, 20)
	a, b := median(echoTimes(bare, keys)), median(echoTimes(through, keys))
	return fmt.Sprintf("%v, bare %v", (b - a).Round(time.Microsecond), a.Round(time.Microsecond)), b-a < time.Millisecond
}

// measureRestart kills the daemon, types a key, and starts another.
func measureRestart(m *measurement) (string, bool) {
	h := m.host(nil)
	x := rig.Open(m, h.Via(h.Addr, "connect", []string{"-t"}, "echo ready; cat"))
	x.Expect("ready\r\n")
	var times []time.Duration
	for i := range 10 {
		key := string(rune('A' + i))
		h.Stop(syscall.SIGKILL)
		if i%2 == 0 { // typed while it is away, or after
			x.Send(key)
		}
		time.Sleep(time.Duration(i) * 500 * time.Millisecond)
		h.Start()
		start := time.Now()
		if i%2 != 0 {
			x.Send(key)
		}
		x.Expect(key)
		times = append(times, time.Since(start))
	}
	mid := median(times)
	worst := times[len(times)-1]
	return fmt.Sprintf("median %v, worst %v of %d", mid.Round(time.Millisecond), worst.Round(time.Millisecond), len(times)), worst <= time.Second
}

// measureFolder removes the sockets of a session and restarts the daemon.
func measureFolder(m *measurement) (string, bool) {
	h := m.host(nil)
	x := rig.Open(m, h.Via(h.Addr, "connect", []string{"-t"}, "echo ready; cat"))
	x.Expect("ready\r\n")
	h.Stop(syscall.SIGKILL)
	if err := os.RemoveAll(h.Path("run")); err != nil {
		m.Fatal(err)
	}
	x.Send("kept")
	h.Start()
	start := time.Now()
	x.ExpectWithin("kept", 3*time.Minute)
	took := time.Since(start)
	return fmt.Sprintf("after %v", took.Round(time.Second)), took < 2*time.Minute
}

// measureIdleWire counts what an idle session sends, with the headers of IPv4 and
// UDP.
func measureIdleWire(m *measurement) (string, bool) {
	const headers = 20 + 8
	h := m.host(nil)
	p := h.Proxy(netem.Config{})
	x := h.Shell(p.Addr())
	count := func() uint64 {
		up, down := p.Counters()
		return up.Bytes + down.Bytes + headers*(up.Packets+down.Packets)
	}
	rate := func(d time.Duration) float64 {
		before := count()
		time.Sleep(d)
		return float64(count()-before) / d.Seconds()
	}
	x.Run("echo on", "on")
	time.Sleep(10 * time.Second) // acks, and QUIC's own timers
	active := rate(45 * time.Second)
	time.Sleep(10 * time.Second) // the minute after traffic ends
	idle := rate(100 * time.Second)
	return fmt.Sprintf("%.1f B/s, %.1f B/s", active, idle), active <= 30 && idle <= 8
}

// measureIdleMemory looks at the memory of the processes of idle sessions.
func measureIdleMemory(m *measurement) (string, bool) {
	const sessions = 10
	h := m.host(nil)
	first := h.Shell(h.Addr)
	settle := func() { time.Sleep(5 * time.Second) }
	settle()
	before := rss(m, h.Daemon.Process.Pid)
	clients := []int{first.Cmd.Process.Pid}
	for range sessions {
		clients = append(clients, h.Shell(h.Addr).Cmd.Process.Pid)
	}
	settle()
	daemon := (rss(m, h.Daemon.Process.Pid) - before) / sessions
	client := 0
	for _, pid := range clients {
		client = max(client, rss(m, pid))
	}
	holder := 0
	for _, pid := range holders(m, h) {
		holder = max(holder, rss(m, pid))
	}
	return fmt.Sprintf("holder %.1f MiB, client %.1f MiB, daemon %d KB more a session",
		float64(holder)/(1<<20), float64(client)/(1<<20), daemon/1000), holder < 14<<20 && client < 20<<20 && daemon < 200_000
}

// rss returns the memory that a process has, in bytes.
func rss(m *measurement, pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		m.Fatal(err)
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(b)
	if found == nil {
		m.Fatalf("no VmRSS of process %d", pid)
	}
	kb, _ := strconv.Atoi(string(found[1]))
	return kb << 10
}

// holders returns the processes that a host's daemon has started.
func holders(m *measurement, h *rig.Host) []int {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		m.Fatal(err)
	}
	var pids []int
	for _, dir := range dirs {
		exe, _ := os.Readlink(dir + "/exe")
		args, _ := os.ReadFile(dir + "/cmdline")
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if exe == filepath.Join(h.Bin, "qtd") && strings.Contains(string(args), "\x00hold\x00") && parent(pid) == h.Daemon.Process.Pid {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		m.Fatal("no holder found")
	}
	return pids
}

func parent(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if found := regexp.MustCompile(`PPid:\s+(\d+)`).FindSubmatch(b); found != nil {
		ppid, _ := strconv.Atoi(string(found[1]))
		return ppid
	}
	return 0
}
