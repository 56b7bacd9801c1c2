//go:build linux || darwin

package keyfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// maxFile is the size of the largest file that is read, in bytes.
const maxFile = 1 << 20

// errWritable is the error of a file that other accounts may change.
var errWritable = errors.New("others may write to it: chmod go-w")

// checkOwner refuses a file or directory that other accounts than this one and root
// may change. It accepts a directory with the sticky bit, such as /tmp.
func checkOwner(name string, uid uint32, info os.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != 0 && stat.Uid != uid {
		return fmt.Errorf("%s: belongs to another account", name)
	}
	if info.Mode().Perm()&0o022 != 0 && (!info.IsDir() || info.Mode()&os.ModeSticky == 0) {
		return fmt.Errorf("%s: %w", name, errWritable)
	}
	return nil
}

// readOwn reads a file of an account, with the checks of readStrict unless it is lax.
func readOwn(name string, uid uint32, home string, lax bool) ([]byte, error) {
	if !lax {
		return readStrict(name, uid, home)
	}
	content, _, err := auth.ReadFile(name, maxFile)
	return content, err
}

// readStrict reads a file of an account. Like sshd's StrictModes, it refuses a file if
// another account may write to it or to a directory above it, up to the home or the root.
func readStrict(name string, uid uint32, home string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	content, info, err := auth.ReadFile(real, maxFile)
	if err != nil {
		return nil, err
	}
	if err := checkOwner(real, uid, info); err != nil {
		return nil, err
	}
	home, _ = filepath.EvalSymlinks(home)
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		if err := checkOwner(dir, uid, info); err != nil {
			return nil, err
		}
		if dir == home || dir == filepath.Dir(dir) {
			return content, nil
		}
	}
}
