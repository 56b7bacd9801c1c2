//go:build linux

package work

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
)

// A daemonWatch looks again and again at what a daemon takes. It yields the most that it has
// seen: "daemon growth", MiB of resident memory, and "daemon threads", both beyond what there
// was at first; and "children", the processes of the daemon that hold no session.
type daemonWatch struct {
	memory        int // at first, in bytes
	threads       int // at first
	stop, stopped func()

	// Set when stopped has returned:
	mostMemory, mostThreads, mostChildren int
}

// watchDaemon watches a daemon until figures is called or the measurement ends.
func watchDaemon(t *measure.T, h *rig.Host) *daemonWatch {
	const interval = 20 * time.Millisecond
	pid, all := h.Daemon.Process.Pid, h.Processes()
	w := &daemonWatch{memory: daemonRSS(t, all), threads: daemonThreads(t, all)}
	done := make(chan struct{})
	var watching sync.WaitGroup
	w.stop, w.stopped = sync.OnceFunc(func() { close(done) }), watching.Wait
	t.Cleanup(func() {
		w.stop()
		w.stopped()
	})
	watching.Go(func() {
		t.Guard(func() {
			for {
				w.mostMemory = max(w.mostMemory, daemonRSS(t, all))
				w.mostThreads = max(w.mostThreads, daemonThreads(t, all))
				w.mostChildren = max(w.mostChildren, helpers(pid))
				select {
				case <-time.After(interval):
				case <-done:
					return
				}
			}
		})
	})
	return w
}

// daemonRSS returns the resident memory of the processes of a daemon.
func daemonRSS(t *measure.T, pids []int) (sum int) {
	for _, pid := range pids {
		sum += measure.RSS(t, pid)
	}
	return sum
}

// daemonThreads returns how many threads they have.
func daemonThreads(t *measure.T, pids []int) (sum int) {
	for _, pid := range pids {
		sum += measure.Threads(t, pid)
	}
	return sum
}

// helpers returns how many children of a daemon neither hold a session nor talk to clients.
func helpers(daemon int) (n int) {
	for _, pid := range measure.Children(daemon) {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if fields := bytes.Split(args, []byte{0}); err == nil &&
			(len(fields) < 2 || string(fields[1]) != spawn.Command && string(fields[1]) != "network") {
			n++
		}
	}
	return n
}

func (w *daemonWatch) figures() []Figure {
	w.stop()
	w.stopped()
	growth := float64(w.mostMemory-w.memory) / (1 << 20)
	figures := []Figure{
		one("daemon growth", "MiB", growth),
		one("daemon threads", "", float64(w.mostThreads-w.threads)),
		one("children", "", float64(w.mostChildren)),
	}
	for i := range figures {
		figures[i].Portable = true
	}
	return figures
}
