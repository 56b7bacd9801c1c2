//go:build linux || darwin

// Package rig is a host with a daemon, a user with a key, the user's terminal, and a
// network between, for tests and measurements of the programs. It promises that all of it
// ends with the test.
package rig

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// Patience is how long anything may take on a busy machine before it fails.
const Patience = 20 * time.Second

// T is the test or measurement that uses a rig.
type T interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Logf(format string, args ...any)
	Cleanup(func())
}

// Build builds qt and qtd into a directory, from the module that the working
// directory is in, with extra arguments for go build. Without -race, they are those of a release.
func Build(dir string, args ...string) error {
	all := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", dir}, args...)
	all = append(all, "github.com/quicterm/quicterm/cmd/qt", "github.com/quicterm/quicterm/cmd/qtd")
	cmd := exec.Command("go", all...)
	if !slices.Contains(args, "-race") { // which needs cgo
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// A Host is a machine with a daemon, and a user with a key on the same machine.
type Host struct {
	T          T
	Bin        string            // where qt and qtd are
	Dir        string            // of all its files
	Settings   map[string]string // of the daemon, beyond the usual ones, as TOML
	Client     map[string]string // of the client
	Identities []string          // files with the client's private keys, in Dir
	Daemon     *exec.Cmd
	Log        *Output                              // of the daemon and its holders
	Addr       netip.AddrPort                       // of the daemon, where it listens unless the settings say otherwise
	Key        ssh.PublicKey                        // of the user
	In         interface{ In(*exec.Cmd) *exec.Cmd } // namespace of the daemon; nil means this process's
}

// NewHost prepares a host. Its daemon is started by Start.
func NewHost(t T, bin string) *Host {
	t.Helper()
	// Unix sockets need short paths.
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{
		T: t, Dir: dir, Bin: bin, Settings: map[string]string{}, Client: map[string]string{}, Identities: []string{"id"},
		Log: new(Output), Addr: freeAddr(t),
	}
	t.Cleanup(func() {
		if h.Daemon != nil {
			h.Stop(syscall.SIGTERM)
		}
		if err := EndSessions(h.Path("run/*/*.sock")); err != nil { // they wait for no client once the daemon is gone
			t.Fatal(err)
		}
		os.RemoveAll(dir)
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", h.Log.String())
		}
	})
	h.NewKey("host_key")
	h.Key = h.NewKey("id")
	h.Write("authorized_keys", string(ssh.MarshalAuthorizedKey(h.Key)))
	return h
}

// NewKey makes a private key file and its public half beside it.
func (h *Host) NewKey(name string) ssh.PublicKey {
	h.T.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		h.T.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		h.T.Fatal(err)
	}
	h.Write(name, string(pem.EncodeToMemory(block)))
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		h.T.Fatal(err)
	}
	h.Write(name+".pub", string(ssh.MarshalAuthorizedKey(key)))
	return key
}

// Path returns the name of a file of the host.
func (h *Host) Path(name string) string { return filepath.Join(h.Dir, name) }

// Write writes a file of the host, for its owner alone if it is new. A process that reads it
// meanwhile gets all of the old content or of the new one.
func (h *Host) Write(name, content string) {
	h.T.Helper()
	file := h.Path(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		h.T.Fatal(err)
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode()
	}
	// A child of another test must not inherit the file: what is open for writing cannot run.
	syscall.ForkLock.RLock()
	err := os.WriteFile(file+".new", []byte(content), 0o600)
	syscall.ForkLock.RUnlock()
	if err == nil {
		err = errors.Join(os.Chmod(file+".new", mode), os.Rename(file+".new", file))
	}
	if err != nil {
		h.T.Fatal(err)
	}
}

// Read returns the content of a file of the host.
func (h *Host) Read(name string) string {
	h.T.Helper()
	b, err := os.ReadFile(h.Path(name))
	if err != nil {
		h.T.Fatal(err)
	}
	return string(b)
}
