//go:build linux || darwin

package socket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// shortDir returns a directory whose name leaves room for that of a socket.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Daemons remove sockets that do not listen, but none that is being made.
func TestSocketListensBeforeItHasAName(t *testing.T) {
	base := rundir.Base(filepath.Join(shortDir(t), "run"))
	dir, err := base.Make()
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				files, err := os.ReadDir(dir)
				if err != nil {
					t.Error(err)
					return
				}
				for _, f := range files {
					if _, ok := ParseName(f.Name()); !ok {
						continue
					}
					path := filepath.Join(dir, f.Name())
					c, err := net.Dial("unix", path)
					switch {
					case err == nil:
						c.Close()
					case errors.Is(err, syscall.ECONNREFUSED):
						// Close removes the name first. Only a socket that is made again at this moment refuses once.
						if c, err := net.Dial("unix", path); err == nil {
							c.Close()
						} else if errors.Is(err, syscall.ECONNREFUSED) && os.Remove(path) == nil {
							t.Errorf("%s does not listen", f.Name())
						}
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range 300 {
		s, err := Listen(base, Name(wire.SessionID{byte(i >> 8), byte(i)}))
		if err != nil {
			t.Error(err)
			break
		}
		if !s.ours() {
			t.Error("a new socket is gone")
		}
		if i%2 == 0 {
			if err := os.Remove(s.path); err != nil {
				t.Error(err)
			}
			if err := s.Restore(); err != nil || !s.ours() {
				t.Errorf("restored: %v", err)
			}
		}
		s.Close()
	}
	close(stop)
	wg.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A socket that the daemon has bound where this account can make nothing is made again in
// the account's own directory when its name is gone.
func TestPassedSocketRestored(t *testing.T) {
	base := rundir.Base(filepath.Join(shortDir(t), "run"))
	passed := filepath.Join(shortDir(t), "x.sock")
	f, err := rundir.Bind(passed, uint32(os.Geteuid()), uint32(os.Getegid()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Adopt(base, "x.sock", f, passed)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dial := func(path string) {
		t.Helper()
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	dial(passed)
	if err := s.Restore(); err != nil || s.path != passed {
		t.Errorf("with its name: restored at %s, %v", s.path, err)
	}
	if err := os.Remove(passed); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(); err != nil {
		t.Fatal(err)
	}
	dial(filepath.Join(base.Dirs(uint32(os.Geteuid()))[0], "x.sock"))
	if f, err = rundir.Bind(passed, uint32(os.Geteuid()), uint32(os.Getegid())); err != nil {
		t.Fatal(err)
	}
	if _, err := Adopt(base, "x.sock", f, passed+".other"); err == nil {
		t.Error("a socket of another name is taken over")
	}
}
