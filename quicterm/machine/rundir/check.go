//go:build linux || darwin

package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Open opens a directory to make and to remove names in it. It refuses one that does not belong to the account of
// this process, or that others can write to: they could make the process remove other files than it means.
func Open(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	named, err := os.Lstat(dir)
	if err == nil {
		var opened fs.FileInfo
		if opened, err = root.Stat("."); err == nil && !os.SameFile(named, opened) {
			err = fmt.Errorf("%s is a symbolic link: remove it", dir)
		}
	}
	if err == nil {
		err = checkInfo(dir, named, uint32(os.Geteuid()))
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// errForeign is the error of what belongs neither to an account nor to root.
var errForeign = errors.New("belongs to another account")

// check refuses a directory in which other accounts than root could have put sockets of
// an account. It follows no symbolic link.
func check(dir string, uid uint32) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !belongs(info, uid) && !belongs(info, 0) {
		return fmt.Errorf("%s: %w", dir, errForeign)
	}
	if uid != 0 && checkInfo(dir, info, 0) == nil {
		return nil
	}
	return checkOwnInfo(dir, info, uid)
}

func belongs(info fs.FileInfo, uid uint32) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uid
}

// checkOwnInfo refuses what is not the own directory of an account, which no other account can enter.
func checkOwnInfo(dir string, info fs.FileInfo, uid uint32) error {
	err := checkInfo(dir, info, uid)
	if err == nil && info.Mode().Perm() != 0o700 {
		err = fmt.Errorf("%s has mode %04o: make it 0700", dir, info.Mode().Perm())
	}
	return err
}

// checkInfo refuses what is not a directory that belongs to an account and no other account can write to.
func checkInfo(dir string, info fs.FileInfo, uid uint32) error {
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory: remove it", dir)
	case !belongs(info, uid):
		return fmt.Errorf("%s does not belong to user id %d: remove it", dir, uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s has mode %04o: others may write to it", dir, info.Mode().Perm())
	}
	return nil
}

// maxLinks bounds how many symbolic links are followed, as Linux does.
const maxLinks = 40

// checkAbove refuses a path, as root, that another account could give another meaning: by a
// directory or a symbolic link above it. What does not exist is no risk.
func checkAbove(path string, links int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if links > maxLinks {
		return fmt.Errorf("%s: %w", path, syscall.ELOOP)
	}
	for dir := filepath.Dir(filepath.Clean(path)); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		link := info.Mode()&fs.ModeSymlink != 0
		switch {
		case !ok || stat.Uid != 0:
			return fmt.Errorf("%s, above %s, does not belong to root", dir, path)
		case !link && info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
			return fmt.Errorf("%s, above %s, has mode %04o: others may write to it", dir, path, info.Mode().Perm())
		case link:
			target, err := os.Readlink(dir)
			if err != nil {
				return err
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(dir), target)
			}
			if err := checkAbove(filepath.Join(target, "x"), links+1); err != nil {
				return err
			}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
