package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pkg/sftp"

	"github.com/quicterm/quicterm/quicterm/files"
)

// A tree is a directory and what is below it, of this machine or of a server. Names are relative to it, with slashes.
// Nothing that is written goes through a link below it.
type tree interface {
	stat(name string) (fs.FileInfo, error)
	lstat(name string) (fs.FileInfo, error)
	real(name string) string  // absolute, with slashes, as far as the machine tells
	label(name string) string // as messages call it
	readDir(name string, each func([]fs.FileInfo) error) error
	readLink(name string) (string, error)
	get(name string) ([]byte, error) // at most MaxPut bytes and one more
	open(name string) (source, error)
	hash(name string, offset, size uint64) (files.Hash, error)

	mkdir(name string) error
	symlink(target, name string) error
	put(name string, a files.Attributes, content []byte) error
	// write writes what the content has from an offset on, up to a limit, to a file that is there, and ends the file there.
	// Zeros behind what the file has become holes. It calls wrote with the bytes that are there, possibly from several
	// goroutines at once, and returns the file's size.
	write(name string, content io.ReaderAt, offset, limit int64, wrote func(int64)) (int64, error)
	chmod(name string, mode fs.FileMode) error
	setTime(name string, info fs.FileInfo) error
	rename(from, to string) error
	remove(name string) error
	close()
}

// maxName bounds the name of a file, and maxPath its path below the directory to copy to, in bytes: NAME_MAX and
// PATH_MAX of Linux.
const (
	maxName = 255
	maxPath = 4096
)

// checkName returns why a file of a directory with this name is not copied, or nil. No server may choose a path.
func checkName(name string) error {
	switch {
	case name == "", name == ".", name == "..", len(name) > maxName, strings.ContainsAny(name, "/\x00"),
		runtime.GOOS == "windows" && (strings.ContainsAny(name, `\:`) || !filepath.IsLocal(name)):
		return errors.New("no file here can have this name")
	case files.IsPart(name):
		return errors.New("it is a part of a file that is not whole")
	}
	return nil
}

// A local tree is one of this machine. It is read by its path, in which links count, and written through root.
type local struct {
	dir  string
	root *os.Root // nil if it is only read
}

func (l *local) path(name string) string  { return filepath.Join(l.dir, filepath.FromSlash(name)) }
func (l *local) label(name string) string { return l.path(name) }

func (l *local) stat(name string) (fs.FileInfo, error)  { return os.Stat(l.path(name)) }
func (l *local) lstat(name string) (fs.FileInfo, error) { return os.Lstat(l.path(name)) }

func (l *local) real(name string) string {
	p, err := filepath.Abs(l.path(name))
	if resolved, linkErr := filepath.EvalSymlinks(p); err == nil && linkErr == nil {
		p = resolved
	}
	return filepath.ToSlash(p)
}

func (l *local) readDir(name string, each func([]fs.FileInfo) error) error {
	dir, err := os.Open(l.path(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		infos, err := dir.Readdir(namesAtOnce)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = each(infos)
		}
		if err != nil {
			return err
		}
	}
}

// namesAtOnce is how many files of a directory are read together.
const namesAtOnce = 128

func (l *local) readLink(name string) (string, error) {
	target, err := os.Readlink(l.path(name))
	return filepath.ToSlash(target), err
}

func (l *local) get(name string) ([]byte, error) { return files.Get(l.path(name)) }

func (l *local) open(name string) (source, error) {
	file, _, err := files.OpenRegular(l.path(name))
	return file, err
}

func (l *local) hash(name string, offset, size uint64) (files.Hash, error) {
	file, _, err := files.OpenRegular(l.path(name))
	if err != nil {
		return files.Hash{}, err
	}
	defer file.Close()
	return files.HashRange(file, offset, size)
}

func (l *local) mkdir(name string) error { return l.root.Mkdir(name, 0o755) }
func (l *local) symlink(target, name string) error {
	return l.root.Symlink(filepath.FromSlash(target), name)
}

func (l *local) put(name string, a files.Attributes, content []byte) error {
	return files.PutIn(l.root, name, a, content)
}

func (l *local) write(name string, content io.ReaderAt, offset, limit int64, wrote func(int64)) (int64, error) {
	info, err := l.root.Lstat(name)
	if err = checkPart(info, err, offset); err != nil {
		return 0, err
	}
	file, err := l.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	size, err := writeFrom(file, info.Size(), content, offset, limit, requestsPerFile, wrote)
	return size, errors.Join(err, file.Close())
}

func (l *local) chmod(name string, mode fs.FileMode) error { return l.root.Chmod(name, mode) }
func (l *local) rename(from, to string) error              { return l.root.Rename(from, to) }
func (l *local) remove(name string) error                  { return l.root.Remove(name) }

func (l *local) setTime(name string, info fs.FileInfo) error {
	return l.root.Chtimes(name, info.ModTime(), info.ModTime())
}

func (l *local) close() {
	if l.root != nil {
		l.root.Close()
	}
}

// A remote tree is one of a server.
type remote struct {
	*Files
	dir string
}

func (r *remote) path(name string) string {
	if name == "." {
		return r.dir
	}
	return path.Join(r.dir, name)
}

func (r *remote) label(name string) string { return r.Host + r.path(name) }

func (r *remote) stat(name string) (fs.FileInfo, error) {
	info, err := r.Client.Stat(r.path(name))
	return info, r.reason(err)
}

func (r *remote) lstat(name string) (fs.FileInfo, error) {
	info, err := r.Client.Lstat(r.path(name))
	return info, r.reason(err)
}

func (r *remote) real(name string) string {
	p, err := r.RealPath(r.path(name))
	if err != nil {
		return r.path(name)
	}
	return p
}

func (r *remote) readDir(name string, each func([]fs.FileInfo) error) error {
	return r.reason(r.Files.readDir(r.path(name), each))
}

func (r *remote) readLink(name string) (string, error) {
	target, err := r.Client.ReadLink(r.path(name))
	return target, r.reason(err)
}

func (r *remote) get(name string) ([]byte, error) {
	content, err := r.ask(files.TypeReply, func(id uint32) []byte { return files.GetOf(id, r.path(name)) })
	return content, r.reason(err)
}

func (r *remote) open(name string) (source, error) {
	file, err := r.Client.Open(r.path(name))
	return remoteSource{file, r}, r.reason(err)
}

// A remoteSource is a file of a server that is read.
type remoteSource struct {
	*sftp.File
	tree *remote
}

// ReadAt implements [io.ReaderAt].
func (s remoteSource) ReadAt(p []byte, offset int64) (int, error) {
	n, err := s.File.ReadAt(p, offset)
	return n, s.tree.reason(err)
}

func (r *remote) hash(name string, offset, size uint64) (files.Hash, error) {
	h, err := r.Files.hash(r.path(name), offset, size)
	return h, r.reason(err)
}

func (r *remote) mkdir(name string) error { return r.reason(r.Client.Mkdir(r.path(name))) }

func (r *remote) symlink(target, name string) error {
	return r.reason(r.Client.Symlink(target, r.path(name)))
}

func (r *remote) put(name string, a files.Attributes, content []byte) error {
	return r.Put(r.path(name), a, content)
}

func (r *remote) write(name string, content io.ReaderAt, offset, limit int64, wrote func(int64)) (int64, error) {
	info, err := r.Client.Lstat(r.path(name))
	if err = checkPart(info, r.reason(err), offset); err != nil {
		return 0, err
	}
	file, err := r.OpenFile(r.path(name), os.O_WRONLY)
	if err != nil {
		return 0, r.reason(err)
	}
	size, err := writeFrom(file, info.Size(), content, offset, limit, requestsPerFile, wrote)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return size, r.reason(err)
}

func (r *remote) chmod(name string, mode fs.FileMode) error {
	return r.reason(r.Client.Chmod(r.path(name), mode))
}

func (r *remote) rename(from, to string) error {
	return r.reason(r.PosixRename(r.path(from), r.path(to)))
}

func (r *remote) remove(name string) error { return r.reason(r.Client.Remove(r.path(name))) }

func (r *remote) setTime(name string, info fs.FileInfo) error {
	return r.reason(r.Chtimes(r.path(name), info.ModTime(), info.ModTime()))
}

func (r *remote) close() {}

// mkdirIn makes a directory in a tree if there is none. What is there and no directory, also a link to one, is an error.
func mkdirIn(t tree, name string) (made bool, err error) {
	if name == "." {
		return false, nil
	}
	err = t.mkdir(name)
	if err == nil {
		return true, nil
	}
	info, missing := t.lstat(name)
	switch {
	case missing != nil:
		return false, err
	case info.Mode()&fs.ModeSymlink != 0:
		return false, errors.New("there is a link, which is not followed")
	case !info.IsDir():
		return false, fmt.Errorf("there is a file: %w", fs.ErrExist)
	}
	return false, nil
}
