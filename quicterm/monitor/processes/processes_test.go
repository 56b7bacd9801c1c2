//go:build linux || darwin

package processes

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/keyfile"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A process that is to read keys starts no holders: if its program ignores that, the holders
// would start others.
func TestKeyReaderStartsNoHolder(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	os.Args = []string{"qtd", keyfile.Command}
	if pid, err := spawn.Session(t.Context(), &wire.Launch{}, spawn.Process{}); pid != 0 || err == nil || !strings.Contains(err.Error(), keyfile.Command) {
		t.Errorf("process %d, %v", pid, err)
	}
}

// A session does not exist only if its socket is certainly nowhere, or refuses.
func TestSessionDoesNotExist(t *testing.T) {
	const otherUID = 65534
	uid, id := uint32(os.Geteuid()), wire.SessionID{1}
	for _, test := range []struct {
		why    string
		change func(dir, socket string) error
		exists bool
	}{
		{"nothing was changed", func(dir, socket string) error { return nil }, true},
		{"the socket was removed", func(dir, socket string) error { return os.Remove(socket) }, false},
		{"the directory was removed", func(dir, socket string) error { return os.RemoveAll(dir) }, false},
		{"a socket that refuses", func(dir, socket string) error {
			os.Remove(socket)
			l, err := rundir.Listen(socket)
			if err != nil {
				return err
			}
			l.SetUnlinkOnClose(false)
			return l.Close()
		}, false},
		{"a directory that others can read", func(dir, socket string) error { return os.Chmod(dir, 0o755) }, true},
		{"a link to the directory", func(dir, socket string) error {
			return errors.Join(os.Rename(dir, dir+".real"), os.Symlink(dir+".real", dir))
		}, true},
		{"another account's directory is in its place", func(dir, socket string) error {
			return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755), os.Chown(dir, otherUID, otherUID))
		}, false},
		{"another account's link is in its place", func(dir, socket string) error {
			return errors.Join(os.RemoveAll(dir), os.Symlink("/", dir), os.Lchown(dir, otherUID, otherUID))
		}, false},
	} {
		root, err := os.MkdirTemp("", "qt") // a socket needs a short path
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		p := New(Config{Base: rundir.Base(root)})
		s, err := socket.Listen(p.Base, socket.Name(id))
		if err != nil {
			t.Fatal(err)
		}
		dir := p.Base.Dirs(uid)[0]
		err = test.change(dir, filepath.Join(dir, socket.Name(id)))
		if uid != 0 && errors.Is(err, fs.ErrPermission) {
			s.Close()
			continue // only root can give a directory away
		}
		if err != nil {
			t.Fatal(err)
		}
		err = p.connect(t.Context(), uid, id, func(path string) error {
			c, err := rundir.Dial(path, uid)
			if err == nil {
				c.Close()
			}
			return err
		})
		if errors.Is(err, fs.ErrNotExist) == test.exists {
			t.Errorf("%s: %v", test.why, err)
		}
		s.Close()
	}
}

// A client that goes while its session starts does not keep the session from its scope, which waits for a bounded time.
func TestScopeOfSessionWhoseClientHasGone(t *testing.T) {
	moved := false
	p := New(Config{Log: slog.New(slog.DiscardHandler), Move: func(ctx context.Context, _ int, _ systemd.Scope) error {
		if _, ok := ctx.Deadline(); !ok || ctx.Err() != nil {
			t.Errorf("the context of the move has a deadline: %t, and has ended: %v", ok, ctx.Err())
		}
		moved = true
		return nil
	}})
	gone, leave := context.WithCancel(t.Context())
	leave()
	p.putAside(gone, 1, &account.Account{}, wire.SessionID{})
	if !moved {
		t.Error("it has no scope")
	}
}

// Holders of an account that keep their callers for ever, as in a file system that does not
// answer, keep a number of callers. No further one is told that there is no session, and
// neither other accounts nor the operator wait.
func TestStuckHolders(t *testing.T) {
	p := New(Config{Base: rundir.Base(t.TempDir())})
	if _, err := p.Base.Make(); err != nil {
		t.Fatal(err)
	}
	uid, id := uint32(os.Geteuid()), wire.SessionID{1}
	stuck, answer := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for range MaxAsks {
		wg.Go(func() {
			p.connect(t.Context(), uid, id, func(string) error {
				stuck <- struct{}{}
				<-answer
				return nil
			})
		})
		<-stuck
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	err := p.connect(gone, uid, id, func(string) error { t.Error("one more caller is stuck"); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("one more: %v, want %v", err, context.Canceled)
	}
	if err := p.connect(t.Context(), uid+1, id, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another account: %v, want %v", err, fs.ErrNotExist)
	}
	reached := false
	err = p.connect(OnSide(t.Context(), Operator), uid, id, func(string) error { reached = true; return nil })
	if err != nil || !reached {
		t.Errorf("the operator is kept waiting: %v", err)
	}
	close(answer)
	wg.Wait()
}
