package e2e

import (
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/rig"
)

// A client whose output is not read ends by the second signal at the latest.
func TestSignalWhileOutputBlocks(t *testing.T) {
	h := newHost(t)
	h.Start()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	input, keep, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	cmd := h.Via(h.Addr, "connect", []string{"-t"}, "yes")
	cmd.Stdin, cmd.Stdout = input, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	input.Close()
	write.Close()
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	const enough = 32 << 10 // of the 64 KiB of a pipe, which small writes do not fill
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		n, err := unix.IoctlGetInt(int(read.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		if n >= enough {
			break
		}
		if time.Since(start) > rig.Patience {
			t.Fatalf("the pipe holds only %d bytes", n)
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
		return
	case <-time.After(2 * time.Second):
	}
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(rig.Patience):
		cmd.Process.Kill()
		t.Error("the client lives on after two signals")
	}
}
