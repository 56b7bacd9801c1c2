//go:build linux || darwin

package enrolled

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Find returns the enrolled key with a SHA-256, if it is good for a login now or, with check set, for one that it has
// begun. It changes nothing. The error is fs.ErrNotExist if there is no such key.
func Find(dir string, sum [sha256.Size]byte, check bool) (*auth.Enrolled, error) {
	s, err := open(dir)
	if err != nil {
		return nil, err
	}
	defer s.root.Close()
	f, err := s.find(sum)
	if err != nil {
		return nil, err
	}
	switch err := f.Ended(time.Now(), check && f.spent); {
	case err != nil:
		return nil, err
	case f.spent && !check:
		return nil, fmt.Errorf("the %s was used before", f.Kind)
	}
	return f.Enrolled, nil
}

// Do does a task, and returns its answer.
func Do(task *wire.KeyTask) (wire.Body, error) {
	sum, hasSum := [sha256.Size]byte{}, len(task.Sum) == sha256.Size
	if hasSum {
		sum = [sha256.Size]byte(task.Sum)
	}
	if task.Task == wire.KeysAdd {
		if err := os.MkdirAll(task.Dir, 0o700); err != nil {
			return nil, err
		}
	}
	s, err := open(task.Dir)
	if errors.Is(err, fs.ErrNotExist) && task.Task != wire.KeysUse {
		return new(wire.Keys), nil // none was enrolled
	}
	if err != nil {
		return nil, err
	}
	defer s.root.Close()
	var files []*file
	switch {
	case task.Task == wire.KeysAdd:
		e, err := auth.ParseEnrolled(task.Line)
		if err != nil {
			return nil, err
		}
		return new(wire.Done), s.add(e)
	case task.Task == wire.KeysList:
		files, err = s.all()
		files = slices.DeleteFunc(files, func(f *file) bool {
			return f.Enrolled == nil || f.Ended(time.Now(), f.spent) != nil
		})
	case task.Task == wire.KeysRemove && (hasSum || len(task.Sum) == 0):
		files, err = s.remove(task.Sum)
	case task.Task == wire.KeysUse && hasSum:
		var f *file
		f, err = s.use(sum)
		files = []*file{f}
	default:
		err = fmt.Errorf("task %d of a key with a hash of %d bytes", task.Task, len(task.Sum))
	}
	if err != nil {
		return nil, err
	}
	return describe(files), nil
}

// describe returns what people see of keys, the first one first.
func describe(files []*file) *wire.Keys {
	keys := new(wire.Keys)
	for _, f := range files[:min(len(files), maxNames)] {
		k := wire.EnrolledKey{Sum: f.sum[:], Spent: f.spent}
		if e := f.Enrolled; e != nil {
			k.Kind, k.Name, k.By = e.Kind, e.Name, e.ByKind
			if by, err := auth.ParseUserKey(e.By); err == nil {
				k.By = ssh.FingerprintSHA256(auth.PlainKey(by))
			}
			k.Made, k.Used, k.Expires, k.Types, k.Once = e.Made, e.Used, e.Expires, e.Types, e.Once
			k.Session, _ = wire.ParseSessionID(e.Session) // zeros of another key
		}
		keys.Keys = append(keys.Keys, k)
	}
	slices.SortFunc(keys.Keys, func(a, b wire.EnrolledKey) int { return cmp.Compare(a.Made, b.Made) })
	return keys
}
