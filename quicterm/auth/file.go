package auth

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads a regular file of at most some bytes, or the null device. It waits for no writer, as opening a pipe
// does.
func ReadFile(name string, most int64) ([]byte, os.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|openAtOnce, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() && name != os.DevNull {
		return nil, nil, fmt.Errorf("%s: not a regular file", name)
	}
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s: larger than %d bytes", name, most)
	}
	if err != nil {
		return nil, nil, err
	}
	return content, info, nil
}
