// Package configs has the settings of the client and the daemon: their meaning,
// defaults and limits, and how they are read from TOML files.
//
// A setting that a file leaves out has its default. An unknown setting and a value of the
// wrong form are errors that name the file, the line and the setting; a value out of
// range is an error that names the file and the setting. Sizes and durations have units: "64MiB",
// "1h30m".
//
// In a struct that no file was read into, a zero or negative number, an empty name and a nil
// list mean the default: see WithDefaults.
package configs

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// The sample files have every setting with its default.
var (
	//go:embed qt.toml
	SampleClient string
	//go:embed qtd.toml
	SampleServer string
)

// DefaultPort is the port of a daemon, UDP and TCP.
const DefaultPort = 4433

func userFile(name string) (string, error) {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "quicterm", name), nil
}

// load reads a file, or the default one if that exists, and checks the result.
func load(file string, defaultFile func() (string, error), into any, check func() error) error {
	optional := file == ""
	if optional {
		var err error
		if file, err = defaultFile(); err != nil {
			return err
		}
	}
	content, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) && optional {
		return nil
	}
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if err := decode(string(content), into); err != nil {
		return fmt.Errorf("%s%w", file, err)
	}
	if err := check(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// maxFile bounds a file of settings in bytes: a name that is given may be that of a device.
const maxFile = 1 << 20

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%s is longer than %d bytes", name, maxFile)
	}
	return content, err
}

// decode decodes TOML strictly. Its errors are to follow the name of a file: they begin
// with a line and a column if the parser knows them.
func decode(content string, into any) error {
	err := toml.NewDecoder(strings.NewReader(content)).DisallowUnknownFields().Decode(into)
	var missing *toml.StrictMissingError
	if errors.As(err, &missing) {
		first := missing.Errors[0]
		line, column := first.Position()
		return fmt.Errorf(":%d:%d: there is no setting %q", line, column, strings.Join(first.Key(), "."))
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		err := plainError(bad)
		line, column := bad.Position()
		if key := strings.Join(bad.Key(), "."); key != "" {
			return fmt.Errorf(":%d:%d: %s: %w", line, column, key, err)
		}
		return fmt.Errorf(":%d:%d: %w", line, column, err)
	}
	if err != nil {
		return fmt.Errorf(": %w", err)
	}
	return nil
}

// plainError returns an error of the parser without its name and without types of Go.
func plainError(bad *toml.DecodeError) error {
	text := strings.TrimPrefix(bad.Error(), "toml: ")
	switch {
	case strings.Contains(text, " into struct field "):
		text = "the value has the wrong type: the sample file shows the right one"
	case strings.Contains(text, " cannot be stored in "):
		text = "the number is out of range"
	}
	return errors.New(text)
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

type number interface {
	~int | ~int64 | ~uint16
}

func atLeast[T number](key string, v, least T) error {
	if v < least {
		return fmt.Errorf("%s is %v: it must be at least %v", key, v, least)
	}
	return nil
}

func within[T number](key string, v, least, most T) error {
	if v < least || v > most {
		return fmt.Errorf("%s is %v: it must be from %v to %v", key, v, least, most)
	}
	return nil
}

func oneOf(key, v string, allowed ...string) error {
	if !slices.Contains(allowed, v) {
		return fmt.Errorf("%s is %q: it must be one of %s", key, v, strings.Join(allowed, ", "))
	}
	return nil
}

// setDefault replaces a value that means the default.
func setDefault[T number](v *T, preset T) {
	if *v <= 0 {
		*v = preset
	}
}
