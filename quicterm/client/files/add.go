package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/quicterm/quicterm/quicterm/files"
)

// maxNumber bounds the numbers of files with the same name.
const maxNumber = 1000

// Add writes a new file of a directory, and returns its name: the given one, or with a number if that is taken. The file
// has its name when all of its content is there. Add reads the content, and calls wrote with the bytes that were written,
// from several goroutines at once.
func (f *Files) Add(dir, name string, content io.ReaderAt, size int64, wrote func(n int64)) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	r := &remote{f, dir}
	part, err := r.create(name, files.PartOf)
	if err != nil {
		return "", err
	}
	written, err := r.write(part, content, 0, size, wrote)
	if err == nil && written < size {
		err = errShorter
	}
	if err == nil {
		name, err = r.create(name, func(name string) string { return name })
	}
	if err == nil {
		if err = r.rename(part, name); err != nil { // in place of the file that create made
			r.remove(name)
		}
	}
	if err != nil {
		r.remove(part)
	}
	return name, err
}

// create makes an empty file that is none yet: what of gives for the name, or for the name with the first free number.
func (r *remote) create(name string, of func(string) string) (string, error) {
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 1; n <= maxNumber; n++ {
		file, err := r.OpenFile(r.path(of(name)), os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		if err == nil {
			return of(name), r.reason(file.Close())
		}
		if _, missing := r.lstat(of(name)); missing != nil { // it is not taken
			if !errors.Is(missing, fs.ErrNotExist) {
				err = missing
			}
			return "", r.reason(err)
		}
		name = fmt.Sprintf("%s-%d%s", stem, n, ext)
	}
	return "", fmt.Errorf("there are %d files of this name", maxNumber)
}
