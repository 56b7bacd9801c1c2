//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/quota"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// grantingDaemon runs a daemon on the loopback interface until the test ends, and returns
// the path of its socket for grants.
func grantingDaemon(t *testing.T, cfg Config) string {
	t.Helper()
	if cfg.Settings == nil {
		cfg.Settings = configs.DefaultServer()
	}
	dir := holdertest.ReachableDir(t)
	cfg.Settings.StateDir, cfg.Settings.RuntimeDir = filepath.Join(dir, "state"), filepath.Join(dir, "run")
	cfg.Settings.Listen = []string{"127.0.0.1:0"}
	if cfg.Holders == nil {
		cfg.Holders = holdertest.New(nil)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error)
	go func() { done <- s.ListenAndServe(ctx, idle{}, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if dir, err = s.grantDir(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, rundir.DaemonSocket)
}

// An account whose shell lets nobody in gets no grant.
func TestNologinGetsNoGrant(t *testing.T) {
	if !holdertest.InCopy(t) {
		return
	}
	a, err := new(account.NameService).LookupID(t.Context(), holdertest.Nobody(t).UID)
	if err != nil {
		t.Fatal(err)
	}
	if shell := filepath.Base(a.Shell); shell != "nologin" && shell != "false" {
		t.Skipf("nobody may log in here, with %s", a.Shell)
	}
	path := grantingDaemon(t, Config{})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = []string{grantVar + "=" + path, holdertest.QuickExit}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.UID, Gid: a.GID}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "refused: the account nobody may not log in") {
		t.Errorf("%q, %v; want a refusal", out, err)
	}
}

// The setting grants turns them off.
func TestGrantsOff(t *testing.T) {
	settings := configs.DefaultServer()
	settings.Grants = "off"
	path := grantingDaemon(t, Config{Granted: true, Settings: settings})
	if c, err := net.Dial("unix", path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("connected to %v, %v; want no socket", c, err)
	}
}

// A daemon waits for the lock of one that was killed, which a child may have for a moment, and
// not for that of one that runs.
func TestLockOfAnotherDaemon(t *testing.T) {
	name := filepath.Join(t.TempDir(), daemonLock)
	other, err := lockFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockFile(name); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d:", os.Getpid())) {
		t.Errorf("while another daemon runs: %v", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { other.Close() })
	f, err := lockFile(name)
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	f.Close()
}

// Processes of an account that ask for nothing keep it from grants only while they wait.
func TestSilentAsks(t *testing.T) {
	g := &grants{turns: quota.NewTurns[uint32](maxAllGrants, maxGrants)}
	var ends []func()
	for range maxGrants {
		end, ok := g.turns.Try(1)
		if !ok {
			t.Fatal("an account gets too few grants at once")
		}
		ends = append(ends, end)
	}
	if _, ok := g.turns.Try(1); ok {
		t.Errorf("an account gets more than %d grants at once", maxGrants)
	}
	if _, ok := g.turns.Try(2); !ok {
		t.Error("another account gets none")
	}
	ends[0]()
	if _, ok := g.turns.Try(1); !ok {
		t.Error("the place of a grant that was given stays taken")
	}
}

// A process that asks for a grant cannot name an address whose zone controls the terminal of an operator.
func TestGrantWithoutZone(t *testing.T) {
	onHost(t, func(h *host) {
		const address = "[fe80::1%\x1b[2J]:1000"
		local, err := h.server.admitLocal(h.t.Context(), h.server.self, &wire.Ask{Carrier: true, Client: address, Server: address})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(local.Path); got != "[fe80::1]:1000" || local.Path.Server.Addr().Zone() != "" {
			t.Errorf("the client is at %q, %q", got, local.Path.Server)
		}
	})
}
