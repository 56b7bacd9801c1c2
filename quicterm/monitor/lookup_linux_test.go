package monitor

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// The end of the daemon does not wait for a name service that does not answer.
func TestEndDuringLookup(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	script := "#!/bin/sh\n: > " + asked + "\nexec /bin/sleep 60\n"
	if err := os.WriteFile(filepath.Join(dir, "getent"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := configs.DefaultServer()
	settings.StateDir, settings.RuntimeDir = dir, dir
	s, err := New(Config{Settings: settings, Granted: true, Holders: holdertest.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	s.names.Dirs = []string{dir}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(ctx, idle{}, func(ctx context.Context) error {
			s.Offer(ctx, &privsep.Offer{User: "jane@corp", Keys: [][]byte{make([]byte, 8)}})
			return nil
		})
	}()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(asked); err == nil {
			break
		} else if time.Since(start) > 20*time.Second {
			t.Fatal("the name service is not asked")
		}
	}
	start := time.Now()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("the daemon took %v to end", d)
	}
}
