//go:build linux || darwin

package enrolled

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxNames bounds the files of a directory that are looked at: more than its keys, as others may be in it.
	maxNames = 4 * wire.MaxEnrolled

	// spent is behind the name of a key that was good for one login, and has had it.
	spent = ".spent"

	// temporary is in front of the name of a file that is written, for less than temporaryTime.
	temporary     = ".new-"
	temporaryTime = time.Hour
)

// Dir returns the directory of the keys of an account.
func Dir(home string) string { return filepath.Join(home, ".config", "quicterm", "keys") }

// A store is an open directory of keys.
type store struct {
	root *os.Root
	path string
}

// open opens a directory of this account, into which no other account sees. The caller closes its root.
func open(path string) (*store, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	s := &store{root, path}
	info, err := root.Stat(".")
	if err == nil {
		err = s.checkOwn(".", info)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return s, nil
}

// checkOwn refuses what another account owns or may read.
func (s *store) checkOwn(name string, info os.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	name = filepath.Join(s.path, name)
	switch {
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s: belongs to another account", name)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s: others may use it: chmod go= %s", name, name)
	}
	return nil
}

// A file is a key with its file.
type file struct {
	*auth.Enrolled
	sum   [sha256.Size]byte
	spent bool
}

func (f *file) name() string {
	if f.spent {
		return hex.EncodeToString(f.sum[:]) + spent
	}
	return hex.EncodeToString(f.sum[:])
}

// parseName returns the SHA-256 of the key whose file has a name.
func parseName(name string) (f file, ok bool) {
	name, f.spent = strings.CutSuffix(name, spent)
	sum, err := hex.DecodeString(name)
	if err != nil || len(sum) != len(f.sum) || name != strings.ToLower(name) {
		return f, false
	}
	f.sum = [sha256.Size]byte(sum)
	return f, true
}

// read reads the file of a key. It follows no link, and opens nothing that is no file.
func (s *store) read(f file) (*file, error) {
	name := f.name()
	listed, err := s.root.Lstat(name)
	if err == nil && !listed.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a file", filepath.Join(s.path, name))
	}
	if err != nil {
		return nil, err
	}
	opened, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err == nil && !os.SameFile(listed, info) {
		err = fmt.Errorf("%s: changes while it is read", filepath.Join(s.path, name))
	}
	if err == nil {
		err = s.checkOwn(name, info)
	}
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(opened, auth.MaxEnrolledLine+1))
	if err == nil {
		f.Enrolled, err = auth.ParseEnrolled(content)
	}
	if err == nil && sha256.Sum256(f.Key) != f.sum {
		err = errors.New("the key is not that of the name")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.path, name), err)
	}
	f.Used = max(info.ModTime().Unix(), f.Made)
	return &f, nil
}

// find reads the file of a key, which may be spent.
func (s *store) find(sum [sha256.Size]byte) (*file, error) {
	f, err := s.read(file{sum: sum})
	if errors.Is(err, fs.ErrNotExist) {
		return s.read(file{sum: sum, spent: true})
	}
	return f, err
}

// all returns the files of keys, and of those that cannot be read only their names. It removes what a process has left
// behind that was killed while it wrote.
func (s *store) all() (files []*file, err error) {
	dir, err := s.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxNames)
	if err != nil && err != io.EOF {
		return nil, err
	}
	for _, name := range names {
		if strings.HasPrefix(name, temporary) {
			if info, err := s.root.Lstat(name); err == nil && time.Since(info.ModTime()) > temporaryTime {
				s.root.Remove(name)
			}
			continue
		}
		f, ok := parseName(name)
		if !ok {
			continue
		}
		if whole, err := s.read(f); err == nil {
			files = append(files, whole)
		} else {
			files = append(files, &f)
		}
	}
	return files, nil
}

// add keeps the line of a key in a new file.
func (s *store) add(e *auth.Enrolled) error {
	sum := sha256.Sum256(e.Key)
	if _, err := s.find(sum); !errors.Is(err, fs.ErrNotExist) {
		return errors.New("the key is enrolled already")
	}
	files, err := s.all()
	if err != nil {
		return err
	}
	var oldest *file // of those that let nobody in any more
	n := 0
	for _, f := range files {
		if f.Enrolled != nil && f.Ended(time.Now(), f.spent) != nil {
			s.root.Remove(f.name())
			continue
		}
		if n++; f.spent && f.Enrolled != nil && (oldest == nil || f.Used < oldest.Used) {
			oldest = f
		}
	}
	if n >= wire.MaxEnrolled && oldest != nil {
		if err := s.root.Remove(oldest.name()); err != nil {
			return err
		}
		n--
	}
	if n >= wire.MaxEnrolled {
		return fmt.Errorf("%d keys are enrolled: remove some with qt revoke or qt shares --end", n)
	}
	return s.write((&file{sum: sum}).name(), e.Line())
}

// write makes a file, which appears whole.
func (s *store) write(name string, content []byte) (err error) {
	early := temporary + rand.Text()
	f, err := s.root.OpenFile(early, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.root.Rename(early, name)
	}
	if err != nil {
		s.root.Remove(early)
	}
	return err
}

// remove removes the key with a SHA-256 and those that logins by it have enrolled, or all keys if it is empty, and
// returns them. One that cannot be read has its SHA-256 alone. The key itself is found also among more files than are
// looked at.
func (s *store) remove(sum []byte) (removed []*file, err error) {
	files, err := s.all()
	if len(sum) > 0 {
		files = slices.DeleteFunc(files, func(f *file) bool {
			return bytes.Equal(f.sum[:], sum) || f.Enrolled == nil || !f.enrolledBy(sum)
		})
		named, findErr := s.find([sha256.Size]byte(sum))
		if named == nil {
			named = &file{sum: [sha256.Size]byte(sum)}
		}
		if !errors.Is(findErr, fs.ErrNotExist) {
			files = append(files, named)
		}
	}
	errs := []error{err}
	for _, f := range files {
		failed, name := false, hex.EncodeToString(f.sum[:])
		for _, name := range []string{name, name + spent} { // its use may give it the second one meanwhile
			if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs, failed = append(errs, err), true
			}
		}
		if !failed {
			removed = append(removed, f)
		}
	}
	return removed, errors.Join(errs...)
}

// enrolledBy reports whether a login by the key with a SHA-256, or by its certificate, has enrolled a key.
func (f *file) enrolledBy(sum []byte) bool {
	by, err := auth.ParseUserKey(f.By)
	if err != nil {
		return false
	}
	got := sha256.Sum256(auth.PlainKey(by).Marshal())
	return bytes.Equal(got[:], sum)
}

// use records that a key lets a client in now. It fails for one that is spent.
func (s *store) use(sum [sha256.Size]byte) (*file, error) {
	f, err := s.read(file{sum: sum})
	if err == nil {
		err = f.Ended(time.Now(), false)
	}
	if err == nil && f.Single() {
		before := f.name()
		f.spent = true
		err = s.root.Rename(before, f.name()) // of two that do it, one fails
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("the key was used before, or removed")
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	f.Used = now.Unix()
	return f, s.root.Chtimes(f.name(), now, now)
}
