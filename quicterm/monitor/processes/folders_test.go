//go:build linux || darwin

package processes

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// startCat starts a session that lives until its input ends, and returns the process of
// its holder.
func startCat(t *testing.T, p *Local, a *account.Account, id wire.SessionID) (pid int) {
	t.Helper()
	before := p.children.all()
	launch := &wire.Launch{ID: id, Name: "cat", Path: "/bin/cat", Argv: []string{"cat"}, Dir: "/",
		Buffer: 1 << 20, ExitedTTL: time.Hour, PipeTTL: time.Hour}
	if err := p.Start(t.Context(), a, launch); err != nil {
		t.Fatal(err)
	}
	for _, child := range p.children.all() {
		if !slices.Contains(before, child) {
			pid = child
		}
	}
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}

// all returns the processes that are not reaped.
func (r *reaper) all() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.pids))
}

func awaitGone(t *testing.T, path string) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return
		} else if time.Now().After(until) {
			t.Fatalf("%s is still there (%v)", path, err)
		}
	}
}

// The holder of another account serves a socket that root has made, where the account
// can make nothing; and root removes it, however the holder ended.
func TestSocketsOfAnotherAccount(t *testing.T) {
	if !holdertest.InCopy(t) {
		return
	}
	a := holdertest.Nobody(t)
	base := rundir.Base(filepath.Join(holdertest.ReachableDir(t), "run"))
	p := New(Config{Base: base, Names: new(account.NameService), Log: slog.New(slog.DiscardHandler)})
	query, err := wire.New(&wire.Query{})
	if err != nil {
		t.Fatal(err)
	}
	first, second := wire.SessionID{1}, wire.SessionID{2}
	pid := startCat(t, p, a, first)
	dir := base.Dirs(a.UID)[0]
	path := filepath.Join(dir, socket.Name(first))
	if info, err := os.Lstat(dir); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode().Perm() != 0o750 {
		t.Errorf("the directory is %v, %v; want 0750 of root", info.Mode(), err)
	}
	// Ask checks that it is the account that listens, not root.
	m, err := p.Ask(t.Context(), a.UID, first, &wire.Open{}, query)
	if err != nil {
		t.Fatal(err)
	}
	var state wire.State
	if err := m.Decode(&state); err != nil || state.Name != "cat" {
		t.Errorf("%+v, %v; want the state of the session", state, err)
	}

	// A holder that was started by an earlier daemon is killed: who asks next removes
	// its socket.
	syscall.Kill(pid, syscall.SIGKILL)
	age(t, path)
	next := New(Config{Base: base, Log: p.Log})
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := next.Ask(t.Context(), a.UID, first, &wire.Open{}, query); errors.Is(err, fs.ErrNotExist) {
			break
		} else if time.Now().After(until) {
			t.Fatalf("asked a holder that was killed: %v", err)
		}
	}
	awaitGone(t, path)

	// One that this daemon has started is removed when it ends.
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { p.children.run(ctx) })
	pid = startCat(t, p, a, second)
	if got := p.Sessions(a.UID); !slices.Equal(got, []wire.SessionID{second}) {
		t.Errorf("sessions %v, want the one that was started", got)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	awaitGone(t, filepath.Join(dir, socket.Name(second)))
}

// age makes a socket one whose holder would listen by now.
func age(t *testing.T, path string) {
	t.Helper()
	old := time.Now().Add(-listenTime)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
}

// A socket that does not listen yet is not taken for one whose holder was killed.
func TestStartingHolderKeepsItsSocket(t *testing.T) {
	base := rundir.Base(filepath.Join(holdertest.ReachableDir(t), "run"))
	dir, err := base.Make()
	if err != nil {
		t.Fatal(err)
	}
	p := New(Config{Base: base, Log: slog.New(slog.DiscardHandler)})
	query, err := wire.New(&wire.Query{})
	if err != nil {
		t.Fatal(err)
	}
	uid, id := uint32(os.Geteuid()), wire.SessionID{1}
	path := filepath.Join(dir, socket.Name(id))
	f, err := rundir.Bind(path, uid, uint32(os.Getegid()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p.Ask(t.Context(), uid, id, &wire.Open{}, query)
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("while it starts: %v", err)
	}
	age(t, path)
	p.Ask(t.Context(), uid, id, &wire.Open{}, query)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("later: %v, want it removed", err)
	}
}

// Root removes nothing in a directory of another account, which could have put a link or
// another directory there meanwhile.
func TestRootRemovesNothingOfAnAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root reaches the directories of others")
	}
	a := holdertest.Nobody(t)
	base := rundir.Base(filepath.Join(holdertest.ReachableDir(t), "run"))
	dir, err := base.MakeFor(a.UID, a.GID)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chown(dir, int(a.UID), int(a.GID)), os.Chmod(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	query, err := wire.New(&wire.Query{})
	if err != nil {
		t.Fatal(err)
	}
	id := wire.SessionID{1}
	path := filepath.Join(dir, socket.Name(id))
	f, err := rundir.Bind(path, a.UID, a.GID)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	age(t, path)
	p := New(Config{Base: base, Log: slog.New(slog.DiscardHandler)})
	if _, err := p.Ask(t.Context(), a.UID, id, &wire.Open{}, query); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("asked a dead socket: %v", err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("root has removed a file of the account: %v", err)
	}
}

// The names that are read from an account's directory are bounded.
func TestSocketsAreBounded(t *testing.T) {
	dir := t.TempDir()
	const names = 2 * readNames
	for i := range names + 10 {
		name := socket.Name(wire.SessionID{byte(i), byte(i >> 8)})
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := make(map[wire.SessionID]struct{})
	complete, err := addSessions(found, dir, names)
	if complete || err != nil || len(found) != names {
		t.Errorf("%d sessions, all of them: %v, %v", len(found), complete, err)
	}
}
