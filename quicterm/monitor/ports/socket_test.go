//go:build linux || darwin

package ports

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/quicterm/quicterm/configs"
)

// The socket of metrics is for all, in a directory that only the daemon's account can write to: others
// could put a link in the place of the socket whose mode is changed.
func TestMetricsSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "metrics.sock")
	l, err := ListenHTTP(configs.UnixPrefix + path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("got %v, %v", info, err)
	}
	l.Close()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if l, err := ListenHTTP(configs.UnixPrefix + path); err == nil {
		l.Close()
		t.Error("it is made where others can write")
	}
}

// The control socket is for the daemon's account alone, also if an earlier daemon has left one.
// What is no socket is not removed.
func TestControlSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	for range 2 {
		l, err := ListenSocket(path)
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		defer l.Close()
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got %v, %v", info.Mode(), err)
		}
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("kept"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if l, err := ListenSocket(path); err == nil {
		l.Close()
		t.Error("a file has become a socket")
	}
}
