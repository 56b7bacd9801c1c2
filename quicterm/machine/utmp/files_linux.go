package utmp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lockTime bounds how long another program may lock a file, as in the C library. Every account can
	// lock what it may read.
	lockTime = 10 * time.Second

	// lockPause is the time between two tries.
	lockPause = 20 * time.Millisecond

	// maxRecords bounds how many records of utmp are looked at: a machine has at most 2^20 terminals, and
	// by default 4096.
	maxRecords = 1 << 16
)

// Begin records the beginning of a login. If utmp exists and cannot be written, it records nothing: the end
// would not be recorded. It blocks while another program has locked a file, at most for lockTime (10 s) for each
// of the three files, or until ctx ends. It records nothing, without an error, on other processors and for
// terminals from number 46656 on.
func (f *Files) Begin(ctx context.Context, l *Login, at time.Time) error {
	form, ok := layouts[runtime.GOARCH]
	if !ok || idOf(l.Terminal) == "" {
		return nil
	}
	record := form.begin(l, at)
	if _, err := replace(ctx, f.Utmp, record, idOf(l.Terminal), func([]byte) bool { return true }); err != nil {
		return err
	}
	return errors.Join(appendTo(ctx, f.Wtmp, record), writeLast(ctx, f.Lastlog, form.last(l, at), l.UID))
}

// End records the end of a login, unless that was done already. It blocks as Begin does. After an error, which is
// EAGAIN if a file stays locked, it may be called again.
func (f *Files) End(ctx context.Context, l *Login, at time.Time) error {
	form, ok := layouts[runtime.GOARCH]
	if !ok || idOf(l.Terminal) == "" {
		return nil
	}
	record := form.end(l, at)
	if !l.halfEnded {
		ended, err := replace(ctx, f.Utmp, record, idOf(l.Terminal), func(b []byte) bool {
			own, ok := parse(b)
			return ok && own.Process == l.Process
		})
		if err != nil || !ended {
			return err
		}
	}
	err := appendTo(ctx, f.Wtmp, record)
	l.halfEnded = err != nil
	return err
}

// Living returns the logins of utmp that Begin has recorded, and End has not. It blocks as
// Begin does.
func (f *Files) Living(ctx context.Context) (all []Login, err error) {
	form, ok := layouts[runtime.GOARCH]
	if !ok {
		return nil, nil
	}
	err = open(ctx, f.Utmp, os.O_RDONLY, func(file *os.File, size int64) error {
		return each(file, size, form.size(), func(_ int64, b []byte) bool {
			if l, ok := parse(b); ok {
				all = append(all, l)
			}
			return true
		})
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return all, err
}

// replace writes a record to the place of the one with its id, if that may be replaced, or to the end if
// there is none. It reports whether it has, and also true if there is no file.
func replace(ctx context.Context, path string, record []byte, id string, may func([]byte) bool) (done bool, err error) {
	err = open(ctx, path, os.O_RDWR, func(file *os.File, size int64) error {
		place := size
		done = may(make([]byte, len(record)))
		err := each(file, size, len(record), func(at int64, b []byte) bool {
			if !sameID(b, id) {
				return true
			}
			place, done = at, may(b)
			return false
		})
		if err != nil || !done {
			return err
		}
		_, err = file.WriteAt(record, place)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return done && err == nil, err
}

// appendTo appends a record to a file, if there is one.
func appendTo(ctx context.Context, path string, record []byte) error {
	return writeAt(ctx, path, record, func(size int64) int64 { return size })
}

// writeLast writes the record of an account to lastlog, if there is one.
func writeLast(ctx context.Context, path string, record []byte, uid uint32) error {
	return writeAt(ctx, path, record, func(int64) int64 { return int64(uid) * int64(len(record)) })
}

// writeAt writes a record to a place in a file of such records, if there is one. The place may depend on the file's
// size.
func writeAt(ctx context.Context, path string, record []byte, place func(size int64) int64) error {
	err := open(ctx, path, os.O_RDWR, func(file *os.File, size int64) error {
		if size%int64(len(record)) != 0 {
			return errForm
		}
		_, err := file.WriteAt(record, place(size))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// errForm is the error about a file whose records have another size.
var errForm = errors.New("it does not have the records of this system")

// each calls f with each record and its place, until f returns false.
func each(file *os.File, size int64, record int, f func(at int64, b []byte) bool) error {
	if size%int64(record) != 0 || size/int64(record) > maxRecords {
		return errForm
	}
	all := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(file, 0, size), all); err != nil {
		return err
	}
	for at := 0; at < len(all); at += record {
		if !f(int64(at), all[at:at+record]) {
			return nil
		}
	}
	return nil
}

// open calls f with a file and its size, while other programs cannot change it.
func open(ctx context.Context, path string, flag int, f func(file *os.File, size int64) error) error {
	file, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err == nil {
		err = lock(ctx, file, flag)
	}
	if err != nil {
		return err
	}
	if info, err = file.Stat(); err == nil {
		err = f(file, info.Size())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// lock locks a file for reading or writing until it is closed. The lock belongs to the open file: one of
// the process would end when another goroutine closes the same file.
func lock(ctx context.Context, file *os.File, flag int) error {
	l := unix.Flock_t{Type: unix.F_WRLCK}
	if flag == os.O_RDONLY {
		l.Type = unix.F_RDLCK
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	for {
		err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &l)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR) || ctx.Err() != nil {
			return fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
		}
	}
}
