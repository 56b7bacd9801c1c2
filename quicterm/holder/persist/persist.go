//go:build linux || darwin

// Package persist keeps on disk what is left of a session when its process is gone: a record with its screen.
// A Keeper writes it, and Answer lists, shows and removes those of lost sessions.
//
// A store is a directory of an account. Each session has one file there, named by its id, which its
// process holds locked (flock). A file that is not locked is of a session that is lost. A new state is
// written under another name, synced and renamed: a crash at any moment leaves the state before.
package persist

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// MaxLost bounds the files of lost sessions in one store.
	MaxLost = 100

	// MaxAge is how long the file of a lost session is kept.
	MaxAge = 30 * 24 * time.Hour

	// MaxFile bounds what is read of a file, whatever its size is.
	MaxFile = 1 << 20

	// maxNames bounds how many names of a directory are looked at.
	maxNames = 4000

	// temporary ends the name of a file that is not complete. One that is older than staleAge was left by a crash.
	temporary = ".new"
	staleAge  = time.Hour
)

// ErrLives means that a process holds the file of a session.
var ErrLives = errors.New("the session lives")

// A Store is a directory of files. The caller closes it.
type Store struct{ root *os.Root }

// New returns the store in a directory, of which it becomes the owner. No other account may enter it.
func New(root *os.Root) (*Store, error) {
	info, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has the mode %04o: it must be 0700", root.Name(), mode)
	}
	return &Store{root}, nil
}

// Close closes the directory.
func (s *Store) Close() error { return s.root.Close() }

// Write replaces the file of a session. It returns the new file, which the caller keeps open for as long as
// the session lives. On an error, the file before stays.
func (s *Store) Write(id string, b []byte) (held *os.File, err error) {
	name := id + temporary
	if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	held, err = s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		_, err = held.Write(b)
	}
	if err == nil {
		err = held.Sync()
	}
	if err == nil {
		err = s.root.Rename(name, id)
	}
	if err != nil {
		held.Close()
		s.root.Remove(name)
		return nil, err
	}
	if dir, err := s.root.Open("."); err == nil {
		dir.Sync() // without it, a failure of power may leave the state before
		dir.Close()
	}
	return held, nil
}

// Discard removes the file of a session that the caller holds.
func (s *Store) Discard(id string) error { return s.root.Remove(id) }

// Lost returns the sessions whose files no process holds, those that were written last first. It removes the files
// that are older than MaxAge or beyond MaxLost.
func (s *Store) Lost(now time.Time) (ids []string, err error) {
	dir, err := s.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxNames)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var lost []fs.FileInfo
	for _, name := range names {
		id, unfinished := strings.CutSuffix(name, temporary)
		if !isID(id) {
			continue
		}
		if unfinished {
			if info, err := s.root.Lstat(name); err == nil && now.Sub(info.ModTime()) > staleAge {
				s.root.Remove(name)
			}
		} else if f, info, err := s.open(id); err == nil {
			f.Close()
			lost = append(lost, info)
		}
	}
	slices.SortFunc(lost, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	err = nil
	for i, info := range lost {
		if i >= MaxLost || now.Sub(info.ModTime()) > MaxAge {
			err = errors.Join(err, s.Remove(info.Name()))
		} else {
			ids = append(ids, info.Name())
		}
	}
	return ids, err
}

// Read returns the file of a lost session, and when it was written. The error is ErrLives if a process holds
// it, and fs.ErrNotExist if there is none.
func (s *Store) Read(id string) (b []byte, written time.Time, err error) {
	f, info, err := s.open(id)
	if err != nil {
		return nil, written, err
	}
	defer f.Close()
	b, err = io.ReadAll(io.LimitReader(f, MaxFile))
	return b, info.ModTime(), err
}

// Remove removes the file of a lost session. The errors are those of Read.
func (s *Store) Remove(id string) error {
	f, _, err := s.open(id)
	if err != nil {
		return err
	}
	defer f.Close()
	return s.root.Remove(id)
}

// open opens the file of a lost session. It follows no link: a backup of the home may have put some there.
func (s *Store) open(id string) (*os.File, fs.FileInfo, error) {
	if !isID(id) {
		return nil, nil, fs.ErrNotExist
	}
	named, err := s.root.Lstat(id)
	if err == nil && !named.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", id)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := s.root.OpenFile(id, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLives
	}
	if err == nil { // the process of the session may have replaced the file since, and let go of this one
		if now, statErr := s.root.Lstat(id); statErr != nil || !os.SameFile(named, now) {
			err = ErrLives
		}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, named, nil
}

func isID(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == 16 && strings.ToLower(name) == name
}
