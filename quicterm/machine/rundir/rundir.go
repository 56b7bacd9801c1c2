//go:build linux || darwin

// Package rundir finds the directories of the unix sockets of daemons, holders and
// clients, and opens sockets in them whose other end is of a known account.
//
// The directories depend on the account only, so that logins by ssh, su and cron find the same daemon. An account has
// its own one, /tmp/quicterm-<uid> (root: /run/quicterm/0): no other account but root can enter it. The daemon of
// root makes /run/quicterm/<uid> for the holders that it starts as another account: that one belongs to root, and the
// account's group can enter and list it, and make nothing there. Names are no secret: Linux shows the paths of unix
// sockets to all accounts (/proc/net/unix). The sockets are for the account alone.
//
// A process makes and removes names only in directories that belong to its own account.
package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

const system = "/run/quicterm"

// DaemonSocket is the name of the socket on which a daemon gives grants to local users.
const DaemonSocket = "qtd.sock"

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

func (b Base) shared(uid uint32) string {
	return filepath.Join(b.System(), strconv.FormatUint(uint64(uid), 10))
}

// own returns the directory that an account makes for itself.
func (b Base) own(uid uint32) string {
	if b != "" || uid == 0 {
		return b.shared(uid)
	}
	return "/tmp/quicterm-" + strconv.FormatUint(uint64(uid), 10)
}

// candidates returns the possible directories of an account, best first.
func (b Base) candidates(uid uint32) []string {
	return slices.Compact([]string{b.shared(uid), b.own(uid)})
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

// Unsafe returns why a possible directory of an account is not in Dirs although a socket of the account may be there,
// or nil. There is none in what belongs to a third account, which anyone can make in /tmp.
func (b Base) Unsafe(uid uint32) error {
	for _, dir := range b.candidates(uid) {
		err := check(dir, uid)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errForeign) {
			return err
		}
	}
	return nil
}

// Accounts returns the accounts that have a directory in System: those that the daemon of root has
// started holders for, and root. It looks at no directory of an account.
func (b Base) Accounts() (uids []uint32) {
	entries, err := os.ReadDir(b.System())
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if uid, err := strconv.ParseUint(e.Name(), 10, 32); err == nil && e.IsDir() {
			uids = append(uids, uint32(uid))
		}
	}
	return uids
}

// Make returns the own directory of the account of this process. If there is none, it makes one.
func (b Base) Make() (string, error) {
	uid := uint32(os.Geteuid())
	dir := b.own(uid)
	if b != "" || uid == 0 {
		if err := b.MakeSystem(); err != nil {
			return "", err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err == nil {
		err = checkOwnInfo(dir, info, uid)
	}
	return dir, err
}

// MakeFor returns the directory of the holders that this process, as root, starts as
// another account. If there is none, it makes one.
func (b Base) MakeFor(uid, gid uint32) (string, error) {
	if err := b.MakeSystem(); err != nil {
		return "", err
	}
	dir := b.shared(uid)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	root, err := Open(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.Open(".")
	if err != nil {
		return "", err
	}
	defer f.Close()
	return dir, errors.Join(f.Chown(-1, int(gid)), f.Chmod(0o750))
}

// MakeSystem makes the directory that System returns, if there is none: other accounts must get through.
func (b Base) MakeSystem() error { return MakeSystemDir(b.System(), 0o755) }

// MakeSystemDir makes a directory, if there is none. It sets the mode whatever the umask
// is. As root, it refuses one that another account could write to or replace: it checks
// each directory and symbolic link above it as well; a directory above with the sticky bit,
// such as /tmp, may be writable. Other accounts name such a directory for themselves only.
func MakeSystemDir(dir string, mode fs.FileMode) error {
	if err := checkAbove(dir, 0); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), mode); err != nil {
		return err
	}
	err := os.Mkdir(dir, mode)
	if err == nil {
		err = os.Chmod(dir, mode)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	return errors.Join(checkInfo(dir, info, 0), checkAbove(dir, 0))
}
