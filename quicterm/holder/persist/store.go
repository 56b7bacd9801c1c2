//go:build linux || darwin

package persist

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// MaxRecords bounds the records of sessions that are gone, in one store.
const MaxRecords = 100

// maxNames bounds how many names of a directory are looked at.
const maxNames = 4000

// MaxFile bounds a file that is read, however large it is.
const MaxFile = 64 << 20

// ErrBusy means that another process has the record: its session lives.
var ErrBusy = errors.New("the session lives")

// A Store is a directory of records. The caller closes it. Whoever makes names in it is the account itself.
// Links are still not followed: a backup of the home may have put some there.
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

// Close closes the directory. Records stay open.
func (s *Store) Close() error { return s.root.Close() }

func isID(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == 16 && strings.ToLower(name) == name
}

// names returns the first names in a directory.
func names(root *os.Root) ([]string, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	all, err := d.Readdirnames(maxNames)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

// IDs returns the sessions that have a record, also those that live.
func (s *Store) IDs() ([]string, error) {
	all, err := names(s.root)
	return slices.DeleteFunc(all, func(name string) bool { return !isID(name) }), err
}

// Create makes the record of a session. It has no file yet.
func (s *Store) Create(id string) (*Record, error) {
	temporary := id + ".new"
	if err := s.root.Mkdir(temporary, 0o700); err != nil {
		return nil, err
	}
	r, err := s.open(temporary, id, os.O_CREATE|os.O_EXCL, syscall.LOCK_EX)
	if err == nil {
		err = s.root.Rename(temporary, id)
	}
	if err != nil {
		r.Close()
		s.root.RemoveAll(temporary)
		return nil, err
	}
	return r, nil
}

// Take takes a record over. The error is ErrBusy while another process has it, and fs.ErrNotExist if
// there is none.
func (s *Store) Take(id string) (*Record, error) {
	if !isID(id) {
		return nil, fs.ErrNotExist
	}
	return s.open(id, id, 0, syscall.LOCK_EX)
}

// Look opens a record to read it: several processes may do so at a time. The errors are those of Take.
func (s *Store) Look(id string) (*Record, error) {
	if !isID(id) {
		return nil, fs.ErrNotExist
	}
	return s.open(id, id, 0, syscall.LOCK_SH)
}

func (s *Store) open(name, id string, flags, how int) (*Record, error) {
	info, err := s.root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory", name)
	}
	if err != nil {
		return nil, err
	}
	dir, err := s.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if info, err := dir.Lstat("lock"); err == nil && !info.Mode().IsRegular() {
		dir.Close()
		return nil, errors.New("lock is no regular file")
	}
	lock, err := dir.OpenFile("lock", os.O_RDWR|syscall.O_NONBLOCK|flags, 0o600)
	if err == nil {
		if err = syscall.Flock(int(lock.Fd()), how|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrBusy
		}
	}
	r := &Record{store: s, id: id, dir: dir, lock: lock}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Prune removes the records of sessions that are gone and were not written for ttl, and the oldest ones
// beyond MaxRecords.
func (s *Store) Prune(now time.Time, ttl time.Duration) error {
	all, err := names(s.root)
	if err != nil {
		return err
	}
	type gone struct {
		name    string
		written time.Time
	}
	var left []gone
	for _, name := range all {
		id := strings.TrimSuffix(name, ".new")
		if !isID(id) {
			continue
		}
		r, err := s.open(name, id, 0, syscall.LOCK_SH)
		if errors.Is(err, ErrBusy) {
			continue
		}
		written := s.written(name)
		if err == nil {
			r.Close()
		} else if now.Sub(written) < time.Hour { // it may be in the making
			continue
		}
		left = append(left, gone{name, written})
	}
	slices.SortFunc(left, func(a, b gone) int { return cmp.Compare(b.written.UnixNano(), a.written.UnixNano()) })
	for i, g := range left {
		if i >= MaxRecords || now.Sub(g.written) > ttl {
			err = errors.Join(err, s.prune(g.name, g.written))
		}
	}
	return err
}

// prune removes a record, unless another process has it or has written it since.
func (s *Store) prune(name string, written time.Time) error {
	r, err := s.open(name, strings.TrimSuffix(name, ".new"), 0, syscall.LOCK_EX)
	if errors.Is(err, ErrBusy) || s.written(name).After(written) {
		r.Close()
		return nil
	}
	defer r.Close() // what has no lock is no record
	return s.root.RemoveAll(name)
}

// written returns when a record was written last.
func (s *Store) written(name string) (last time.Time) {
	if info, err := s.root.Lstat(name); err == nil {
		last = info.ModTime()
	}
	dir, err := s.root.OpenRoot(name)
	if err != nil {
		return last
	}
	defer dir.Close()
	files, _ := names(dir)
	for _, file := range files {
		if info, err := dir.Lstat(file); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// A Record is that of a session. One goroutine at a time may use it; the caller closes it, which does
// not remove it.
type Record struct {
	store *Store
	id    string
	dir   *os.Root
	lock  *os.File

	file *os.File // the last one that was written
	enc  *encoder // of it
	size int64
	last uint64 // its number, or 0
}

// Removed reports whether the record's lock has no name any more, as after the record was removed. If the lock
// has another name, of a hard link or on NFS, the next write fails with fs.ErrNotExist instead.
func (r *Record) Removed() bool {
	info, err := r.lock.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}

// Close lets others take the record. It is idempotent.
func (r *Record) Close() error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, f := range []*os.File{r.file, r.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	r.file, r.lock = nil, nil
	return errors.Join(append(errs, r.dir.Close())...)
}

// Remove removes the record, and closes it.
func (r *Record) Remove() error {
	err := r.store.root.RemoveAll(r.id)
	return errors.Join(err, r.Close())
}

// numbers returns the numbers of the files, ascending.
func (r *Record) numbers() ([]uint64, error) {
	all, err := names(r.dir)
	var found []uint64
	for _, name := range all {
		if n, err := strconv.ParseUint(name, 10, 63); err == nil && n > 0 && strconv.FormatUint(n, 10) == name {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found, err
}

func (r *Record) place(n uint64) string { return r.id + "/" + strconv.FormatUint(n, 10) }

// Load returns what the record has: the last whole file and, before that, the one that it continues.
func (r *Record) Load(key []byte) (*Contents, error) {
	found, err := r.numbers()
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fs.ErrNotExist
	}
	var failed error
	for i, n := range slices.Backward(found) {
		c, err := r.read(n, key)
		if err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		if i > 0 && found[i-1] == n-1 {
			if before, err := r.read(n-1, key); err == nil && before.closed {
				before.Facts, before.Events = c.Facts, append(before.Events, c.Events...)
				return before, nil
			}
		}
		return c, nil
	}
	return nil, failed
}

// Head returns the first facts of the last file, as of when it was written last. It reads no more: what follows may be
// damaged.
func (r *Record) Head(key []byte) (f *Facts, err error) {
	found, err := r.numbers()
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fs.ErrNotExist
	}
	n := found[len(found)-1]
	file, err := r.openFile(n)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		f, err = decodeHead(file, key, r.place(n))
	}
	if err == nil {
		f.Seen = info.ModTime().Unix()
	}
	return f, err
}

func (r *Record) read(n uint64, key []byte) (*Contents, error) {
	f, err := r.openFile(n)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decode(f, key, r.place(n), MaxFile)
}

func (r *Record) openFile(n uint64) (*os.File, error) {
	name := strconv.FormatUint(n, 10)
	info, err := r.dir.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
	}
	if err != nil {
		return nil, err
	}
	return r.dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// A State is a screen, with what is known of its session.
type State struct {
	Facts  Facts
	Screen []byte
}

// Begin writes a state to a new file. If continues is true, the file before is kept: all output up to
// the state was appended to it. Else the files before are removed. With sync, the state is on the disk
// when Begin returns.
func (r *Record) Begin(s *State, key []byte, continues, sync bool) error {
	found, err := r.numbers()
	if err != nil {
		return err
	}
	if len(found) > 0 {
		r.last = max(r.last, found[len(found)-1])
	}
	if continues = continues && r.file != nil; continues {
		r.enc.add(typeClosed, nil)
		if err := r.flush(sync); err != nil {
			return err
		}
	}
	if r.file != nil {
		r.file.Close()
		r.file, r.enc = nil, nil
	}
	before := r.last
	r.last++
	if continues { // not three files at once
		err = r.removeExcept(before)
	}
	if err == nil {
		err = r.begin(s, key, sync)
	}
	if err == nil && !continues {
		err = r.removeExcept(r.last)
	}
	return err
}

func (r *Record) begin(s *State, key []byte, sync bool) error {
	const temporary = "new"
	if err := r.dir.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := r.dir.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	r.file, r.size = f, 0
	if r.enc, err = newEncoder(key, r.place(r.last)); err == nil {
		err = r.enc.facts(&s.Facts)
	}
	if err == nil {
		r.enc.addAll(typeScreen, s.Screen)
		r.enc.add(typeScreenEnd, nil)
		err = r.flush(sync)
	}
	if err == nil {
		err = r.dir.Rename(temporary, strconv.FormatUint(r.last, 10))
	}
	if err == nil && sync {
		err = r.syncDir()
	}
	if err != nil {
		f.Close()
		r.file, r.enc = nil, nil
		r.dir.Remove(temporary)
	}
	return err
}

// Append writes what has come since: events, and facts if they are not nil. It returns the size of the
// file. After an error, the next call must be Begin.
func (r *Record) Append(events []Event, facts *Facts, sync bool) (size int64, err error) {
	if r.file == nil {
		return 0, errors.New("no file to append to")
	}
	for _, e := range events {
		if e.Output == nil {
			r.enc.resize(e.Cols, e.Rows)
		} else {
			r.enc.addAll(typeOutput, e.Output)
		}
	}
	if facts != nil {
		if err := r.enc.facts(facts); err != nil {
			return r.size, err
		}
	}
	err = r.flush(sync)
	return r.size, err
}

// Continues reports whether Append may be called.
func (r *Record) Continues() bool { return r.file != nil }

func (r *Record) flush(sync bool) error {
	b := r.enc.b
	r.enc.b = nil
	n, err := r.file.Write(b)
	r.size += int64(n)
	if err == nil && sync {
		err = r.file.Sync()
	}
	if err != nil { // what follows a torn frame could not be read
		r.file.Close()
		r.file, r.enc = nil, nil
	}
	return err
}

// Clear removes what was written. The record stays, without a file.
func (r *Record) Clear() error {
	found, err := r.numbers()
	if len(found) > 0 {
		r.last = max(r.last, found[len(found)-1])
	}
	if r.file != nil {
		r.file.Close()
		r.file, r.enc = nil, nil
	}
	return errors.Join(err, r.removeExcept(0))
}

func (r *Record) syncDir() error {
	d, err := r.dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (r *Record) removeExcept(kept uint64) error {
	found, err := r.numbers()
	for _, n := range found {
		if n != kept {
			err = errors.Join(err, r.dir.Remove(strconv.FormatUint(n, 10)))
		}
	}
	return err
}
