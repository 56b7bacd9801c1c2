package monitor

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/machine/account"
)

// The network process has the group of its account, and no other with the number of its user id.
func TestNetworkIDs(t *testing.T) {
	for entry, want := range map[string][2]uint32{
		"quicterm:x:995:994::/:/usr/sbin/nologin": {995, 994},
		"quicterm:x:995:0::/:/usr/sbin/nologin":   {firstUID, firstUID},
		"quicterm:x:995:994::/:/bin/sh":           {firstUID, firstUID},
	} {
		m, dir := newMonitor(t), t.TempDir()
		if a, err := m.names.Lookup(t.Context(), networkAccount); err == nil {
			t.Skipf("this machine has the account %s", a.Name)
		}
		m.names = &account.NameService{Dirs: []string{dir}}
		script := "#!/bin/sh\ncase $3 in quicterm) echo '" + entry + "';; *) exit 2;; esac\n"
		syscall.ForkLock.RLock() // what another test forks could have the file open for writing
		err := os.WriteFile(filepath.Join(dir, "getent"), []byte(script), 0o700)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		uid, gid, err := m.networkIDs(t.Context())
		if got := [2]uint32{uid, gid}; err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", entry, got, err, want)
		}
	}
}

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
			s.Offer(ctx, &Offer{User: "jane@corp", Keys: [][]byte{make([]byte, 8)}})
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
