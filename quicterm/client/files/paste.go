package files

import (
	"bytes"
	"crypto/rand"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/files"
)

const (
	// pasteDir is the directory of what is pasted, from the home directory on, and pasteTime the time in a name.
	pasteDir  = ".cache/quicterm/paste"
	pasteTime = "20060102-150405-"

	// pasteAge is the age at which what was pasted is removed.
	pasteAge = 7 * 24 * time.Hour
)

// pastes matches the names that Paste gives.
const pastes = `^\d{8}-\d{6}-[a-z0-9]{8}(\.[a-z0-9]+)?$`

// Paste writes a new file with a content, which only the account can read, and returns its absolute path. The name is the
// time, then random letters, as two clients may paste at once, then the suffix. Paste calls wrote with the bytes that were
// written.
func (f *Files) Paste(suffix string, content []byte, wrote func(n int64)) (name string, err error) {
	r, err := f.home(pasteDir)
	if err != nil {
		return "", err
	}
	if err = f.MkdirAll(r.dir); err != nil {
		return "", f.reason(err)
	}
	if err = r.chmod(".", 0o700); err != nil {
		return "", err
	}
	base := time.Now().Format(pasteTime) + strings.ToLower(rand.Text()[:8]) + suffix
	a := files.Attributes{Mode: 0o600, Exact: true}
	if len(content) <= files.MaxPut {
		if err = r.put(base, a, content); err == nil {
			wrote(int64(len(content)))
		}
		return r.path(base), err
	}
	var counting sync.Mutex
	if err = r.put(base, a, nil); err == nil {
		_, err = r.write(base, bytes.NewReader(content), 0, int64(len(content)), func(n int64) {
			counting.Lock()
			defer counting.Unlock()
			wrote(n)
		})
		if err != nil {
			r.remove(base)
		}
	}
	return r.path(base), err
}

// RemoveOldPastes removes what was pasted [pasteAge] before a file that [Files.Paste] has written.
func (f *Files) RemoveOldPastes(name string) {
	r := &remote{f, path.Dir(name)}
	pasted, err := r.lstat(path.Base(name))
	if err != nil {
		return
	}
	var old []string
	pastes := regexp.MustCompile(pastes)
	r.readDir(".", func(infos []fs.FileInfo) error {
		for _, info := range infos {
			if info.Mode().IsRegular() && pastes.MatchString(info.Name()) && pasted.ModTime().Sub(info.ModTime()) > pasteAge {
				old = append(old, info.Name())
			}
		}
		return nil
	})
	for _, base := range old {
		r.remove(base)
	}
}
