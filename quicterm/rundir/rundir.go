//go:build linux || darwin

// Package rundir knows where the unix sockets of daemons, holders and clients
// live, and who is at the other end of one.
//
// The place depends on the account alone, so that a login by ssh, su and cron
// finds the same daemon: /run/quicterm/<uid> where a root daemon made that, else
// /tmp/quicterm-<uid>. It belongs to the account and nobody else can enter it.
package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

const system = "/run/quicterm"

// maxPath is the longest path of a unix socket that both Linux and macOS take,
// in bytes, the final NUL left out.
const maxPath = 103

// A Base is where the directories of all accounts are: empty for the usual
// places, or a directory that stands for /run/quicterm.
type Base string

// System returns the directory that root's daemon makes for all accounts.
func (b Base) System() string {
	if b == "" {
		return system
	}
	return string(b)
}

// candidates are where the directory of an account may be, best first.
func (b Base) candidates(uid uint32) []string {
	id := strconv.FormatUint(uint64(uid), 10)
	dirs := []string{filepath.Join(b.System(), id)}
	if b == "" {
		dirs = append(dirs, "/tmp/quicterm-"+id)
	}
	return dirs
}

// Dirs returns the directories of an account that exist and are safe.
func (b Base) Dirs(uid uint32) []string {
	var dirs []string
	for _, dir := range b.candidates(uid) {
		if check(dir, uid) == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Make returns the directory of an account, which it makes if there is none.
// Only root makes it in the system's place, and for others.
func (b Base) Make(uid uint32) (string, error) {
	candidates := b.candidates(uid)
	if os.Geteuid() == 0 || b != "" {
		if err := makeSystem(b.System()); err != nil {
			return "", err
		}
		candidates = candidates[:1]
	} else if dirs := b.Dirs(uid); len(dirs) > 0 {
		return dirs[0], nil
	} else {
		candidates = candidates[1:]
	}
	dir := candidates[0]
	err := os.Mkdir(dir, 0o700)
	if err == nil && os.Geteuid() == 0 {
		err = os.Lchown(dir, int(uid), -1)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, check(dir, uid)
}

// makeSystem makes the directory of all accounts' directories, if there is none.
// A umask must not close the way to them: holders run as their accounts.
func makeSystem(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// check refuses a directory that is not the account's alone. It follows no
// link, so nobody can put another directory in its place.
func check(dir string, uid uint32) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory: remove it", dir)
	case !ok || stat.Uid != uid:
		return fmt.Errorf("%s belongs to somebody else than user id %d: remove it", dir, uid)
	case info.Mode().Perm() != 0o700:
		return fmt.Errorf("%s has mode %04o: it must be 0700", dir, info.Mode().Perm())
	}
	return nil
}

// Listen listens on a socket that only its owner can connect to.
func Listen(path string) (*net.UnixListener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(true)
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Dial connects to a socket. It refuses one that none of the given accounts
// serves: whoever owns the directory may have put anything there, even a way to
// a socket of root, which would believe that root has sent what we send.
func Dial(path string, uids ...uint32) (*net.UnixConn, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	peer, err := PeerUID(c)
	if err == nil && !slices.Contains(uids, peer) {
		err = fmt.Errorf("%s is served by user id %d, not %d", path, peer, uids[0])
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func checkPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("socket path is %d bytes long, at most %d can be used: %s", len(path), maxPath, path)
	}
	return nil
}
