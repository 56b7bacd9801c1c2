package holder

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// What opens a session of PAM, and does not answer in time, is asked to end before it is killed: su closes the
// session then.
func TestStuckLogin(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "progress")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if b, _ := os.ReadFile(file); len(b) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	pid, err := spawn.Session(ctx, new(wire.Launch), spawn.Process{Login: &spawn.Login{Su: file, Account: "ann"}})
	if pid == 0 || err == nil {
		t.Fatalf("process %d, %v", pid, err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with status %#x, %v", status, err)
	}
}
