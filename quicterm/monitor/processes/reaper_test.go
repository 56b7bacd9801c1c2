//go:build linux || darwin

package processes

import (
	"context"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Neither a process that has ended before it is added nor one that ends later
// stays a zombie.
func TestReaper(t *testing.T) {
	var r reaper
	var ended atomic.Int32
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { r.run(ctx) })
	var pids []int
	for _, script := range []string{"exit", "read x"} {
		cmd := exec.Command("sh", "-c", script)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, cmd.Process.Pid)
		r.add(cmd.Process.Pid, func() { ended.Add(1) })
		in.Close()
	}
	for _, pid := range pids {
		for until := time.Now().Add(20 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("process %d is still there", pid)
			}
		}
	}
	for until := time.Now().Add(20 * time.Second); ended.Load() != 2; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("told of %d ends, want 2", ended.Load())
		}
	}
}
