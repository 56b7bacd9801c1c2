//go:build linux || darwin

package keyfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/enrolled"
)

// An enrolledKey is what a file of an enrolled key says about the key of a query.
type enrolledKey struct {
	*auth.Enrolled
	err    error // why it says nothing, unless there is no file
	issuer int   // the number of the query about the key that has enrolled it, or -1
}

// unread reports whether the disk did not give the file, of whose key nothing is known then.
func (k enrolledKey) unread() bool {
	return slices.ContainsFunc([]error{syscall.EIO, syscall.ESTALE, syscall.EACCES, syscall.ENFILE}, func(err error) bool {
		return errors.Is(k.err, err)
	})
}

// findEnrolled returns the enrolled keys among those of the queries, and further queries about who has enrolled them.
func (r *request) findEnrolled() (keys map[int]enrolledKey, issuers []auth.Query) {
	keys = make(map[int]enrolledKey)
	if r.Sources.Enrolled == "" {
		return keys, nil
	}
	for i, q := range r.Queries {
		e, err := enrolled.Find(r.Sources.Enrolled, sha256.Sum256(q.Key), r.Sources.Check)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		key := enrolledKey{Enrolled: e, err: err, issuer: -1}
		if err == nil && len(e.By) > 0 {
			key.issuer = len(r.Queries) + len(issuers)
			issuers = append(issuers, auth.Query{Key: e.By, From: q.From})
		}
		keys[i] = key
	}
	return keys, issuers
}

// enrolledVerdicts returns the answers to the queries of a request, after those that the sources give: an enrolled key
// is allowed what the one that has enrolled it is.
func (r *request) enrolledVerdicts(verdicts []auth.Verdict, keys map[int]enrolledKey) []auth.Verdict {
	for i, key := range keys {
		v := &verdicts[i]
		if v.Allowed != nil {
			continue
		}
		if v.Refused = key.err; key.err != nil {
			continue
		}
		if v.Refused = r.mayAdd(); v.Refused != nil {
			continue
		}
		allowed := new(auth.Permissions)
		if key.issuer >= 0 {
			by := verdicts[key.issuer]
			if by.Allowed == nil {
				v.Refused = fmt.Errorf("the key that has enrolled the %s: %w", key.Kind, by.Refused)
				continue
			}
			*allowed = *by.Allowed
		}
		if allowed.Enrolled = key.Enrolled; allowed.Guest() && (allowed.Command != "" || allowed.NoPTY) {
			v.Refused = errors.New("the key that has enrolled the share is restricted now")
			continue
		}
		v.Allowed = allowed
		sum := sha256.Sum256(r.Queries[i].Key)
		v.Where = filepath.Join(r.Sources.Enrolled, hex.EncodeToString(sum[:]))
	}
	return verdicts[:len(r.Queries)]
}

// errMayNotAdd is the error of an enrolled key of an account that cannot let keys in by itself.
var errMayNotAdd = errors.New(
	"links, devices and shares are off: the account may write none of its authorized_keys files")

// mayAdd returns nil if the account may itself add keys to one of its files: else who administers the machine decides
// about each key.
func (r *request) mayAdd() error {
	for _, file := range r.Sources.Files {
		err := mayWrite(file)
		for path := file; errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path); {
			path = filepath.Dir(path) // it makes the file in the first that exists
			err = mayWrite(path)
		}
		if err == nil {
			return nil
		}
	}
	return errMayNotAdd
}

// mayWrite returns nil if this account may write a file or directory. The daemon's unit may have made it read-only for
// this process, and not for others of the account: then the owner counts.
func mayWrite(path string) error {
	err := unix.Access(path, unix.W_OK)
	if !errors.Is(err, unix.EROFS) {
		return err
	}
	var stat unix.Stat_t
	if statErr := unix.Stat(path, &stat); statErr != nil {
		return statErr
	}
	if uid := os.Geteuid(); uid != 0 && (int(stat.Uid) != uid || stat.Mode&0o200 == 0) {
		return err
	}
	return nil
}
