package reach

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// maxState bounds the size of such a file in bytes: a server takes about 250.
const maxState = 128 << 10

// stateFile returns the path of a file in the directory for what programs keep.
func stateFile(name string) (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "quicterm", name), nil
}

// readState returns the content of a file, none if there is no file.
func readState(name string) ([]byte, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxState))
}

// changeState changes the content of a file, of which other clients read a whole one at any time.
// They change it before or after.
func changeState(name string, change func([]byte) ([]byte, error)) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	unlock, err := lock(name + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	content, err := readState(name)
	if err == nil {
		content, err = change(content)
	}
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // for its owner alone
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
