//go:build linux || darwin

package account

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// MaxFile is the largest file that ReadFile reads, in bytes.
const MaxFile = 1 << 20

// ReadFile reads a file with the rights of the account: as root, nothing can be
// read this way that the account could not read itself. It refuses files that
// others may change, themselves or by a directory above, as sshd's StrictModes
// does.
func (a *Account) ReadFile(name string) ([]byte, error) {
	if uint32(os.Geteuid()) == a.UID {
		return a.readStrict(name)
	}
	groups, err := a.Groups()
	if err != nil {
		return nil, err
	}
	return a.readAs(name, groups)
}

// readRegular reads a file with the rights of this thread. What the owner of
// the file does to it cannot make it wait, or read without end.
func readRegular(name string) ([]byte, os.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: not a regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(b) > MaxFile {
		return nil, nil, fmt.Errorf("%s: larger than %d bytes", name, MaxFile)
	}
	return b, info, nil
}

// errWritable means that others could have changed a file.
var errWritable = errors.New("others may write to it: chmod go-w")

// checkOwner refuses a file or directory that anybody but the account and root
// may change. A directory with the sticky bit, like /tmp, is fine.
func (a *Account) checkOwner(name string, info os.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != 0 && stat.Uid != a.UID {
		return fmt.Errorf("%s: belongs to somebody else", name)
	}
	if info.Mode().Perm()&0o022 != 0 && (!info.IsDir() || info.Mode()&os.ModeSticky == 0) {
		return fmt.Errorf("%s: %w", name, errWritable)
	}
	return nil
}

// readStrict reads a file and checks it and the directories above it, up to the
// account's home or the root.
func (a *Account) readStrict(name string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	content, info, err := readRegular(real)
	if err != nil {
		return nil, err
	}
	if err := a.checkOwner(real, info); err != nil {
		return nil, err
	}
	home, _ := filepath.EvalSymlinks(a.Home)
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		if err := a.checkOwner(dir, info); err != nil {
			return nil, err
		}
		if dir == home || dir == filepath.Dir(dir) {
			return content, nil
		}
	}
}
