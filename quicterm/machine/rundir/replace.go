package rundir

import (
	"errors"
	"os"
	"path/filepath"
)

// ReplaceFile replaces a file, or makes it, readable by its owner only. Other processes
// read either the old content or the new one, whole.
func ReplaceFile(file string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
