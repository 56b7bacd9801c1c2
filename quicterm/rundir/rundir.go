//go:build linux || darwin

// Package rundir finds the directories of the unix sockets of daemons, holders and
// clients, and opens sockets in them whose other end is of a known account.
//
// The directory depends on the account only, so that logins by ssh, su and cron find the
// same daemon: /run/quicterm/<uid> if a daemon of root has made that, else
// /tmp/quicterm-<uid>. It belongs to the account, and no other account but root can
// enter it.
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

// DaemonSocket is the name of the socket on which a daemon gives grants to local users.
const DaemonSocket = "qtd.sock"

// maxPath is the length of the longest path of a unix socket that both Linux and macOS
// accept, in bytes, without the final NUL.
const maxPath = 103

// A Base is the directory with the directories of all accounts: empty for the default
// ones, or a directory that replaces /run/quicterm.
type Base string

// System returns the directory that the daemon of root makes for all accounts.
func (b Base) System() string {
	if b == "" {
		return system
	}
	return string(b)
}

// candidates returns the possible directories of an account, best first.
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

// Unsafe returns why a possible directory of an account is not in Dirs although something
// is there, or nil.
func (b Base) Unsafe(uid uint32) error {
	for _, dir := range b.candidates(uid) {
		if err := check(dir, uid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Make returns the directory of an account. If there is none, it makes one. Only root can
// make it in the directory that System returns, and for other accounts.
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

// makeSystem makes the directory of all accounts' directories, if there is none. It sets
// the mode whatever the umask is: holders run as their accounts and must get through.
func makeSystem(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// check refuses a directory that other accounts could have made or could enter. It follows
// no symbolic link.
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
		return fmt.Errorf("%s does not belong to user id %d: remove it", dir, uid)
	case info.Mode().Perm() != 0o700:
		return fmt.Errorf("%s has mode %04o: make it 0700", dir, info.Mode().Perm())
	}
	return nil
}

// Listen listens on a new socket that only its owner can connect to.
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

// Dial connects to a socket, and refuses it if the process that listens is of none of the
// given accounts. The owner of the directory may have put anything there, also a link to a
// socket of root, whose daemon would take our requests for those of root.
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
