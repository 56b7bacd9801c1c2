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

// checkOwner refuses a file or directory that other accounts than this one and root may change. sticky accepts a
// directory with the sticky bit, such as /tmp.
func checkOwner(name string, uid uint32, sticky bool, info os.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || stat.Uid != 0 && stat.Uid != uid:
		return fmt.Errorf("%s: belongs to another account", name)
	case info.IsDir() && info.Mode()&os.ModeSticky != 0 && sticky:
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s: %w", name, errWritable)
	}
	return nil
}

// checkUp is checkOwner of a path and of all above it, up to top or the root.
func checkUp(path, top string, uid uint32, sticky bool) error {
	for ; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err == nil {
			err = checkOwner(path, uid, sticky, info)
		}
		if err != nil || path == top || path == filepath.Dir(path) {
			return err
		}
	}
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
	if err := checkOwner(real, uid, true, info); err != nil {
		return nil, err
	}
	home, _ = filepath.EvalSymlinks(home)
	if err := checkUp(filepath.Dir(real), home, uid, true); err != nil {
		return nil, err
	}
	return content, nil
}
