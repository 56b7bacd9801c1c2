// Package configs has the settings of the client and the daemon: their meaning,
// defaults and limits, and how they are read from TOML files.
//
// A setting that a file leaves out has its default. An unknown setting and a value of the
// wrong form or out of range are errors that name the file, the line, the column and the setting. Sizes
// and durations have units: "64MiB", "1h30m".
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
	"path"
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
func load[T any](file string, defaultFile func() (string, error), into *T, checks ...func(*T) error) error {
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
	for _, check := range checks {
		if err := check(into); err != nil {
			return fmt.Errorf("%s%w", file, locate(string(content), err))
		}
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

// decode decodes TOML strictly. Its errors are to follow the name of a file: they begin with a line and a column.
func decode[T any](content string, into *T) error {
	err := decodeAll(content, into)
	if err == nil || !strings.HasPrefix(err.Error(), ": ") {
		return err
	}
	// The parser does not say where. That setting fails alone too.
	for _, at := range places(content) {
		alone := at.text
		if at.table != "" {
			alone = "[" + at.table + "]\n" + alone
		}
		if one := decodeAll(alone, new(T)); one != nil && strings.HasPrefix(one.Error(), ": ") {
			return fmt.Errorf("%s: %s%w", where(content, at.value), at.key, one)
		}
	}
	return err
}

func decodeAll(content string, into any) error {
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

type number interface {
	~int | ~int64 | ~uint16
}

func atLeast[T number](key string, v, least T) error {
	if v < least {
		return wrongf(key, "%s is %v: it must be at least %v", key, v, least)
	}
	return nil
}

func within[T number](key string, v, least, most T) error {
	if v < least || v > most {
		return wrongf(key, "%s is %v: it must be from %v to %v", key, v, least, most)
	}
	return nil
}

func oneOf(key, v string, allowed ...string) error {
	if !slices.Contains(allowed, v) {
		return wrongf(key, "%s is %q: it must be one of %s", key, v, strings.Join(allowed, ", "))
	}
	return nil
}

// notEmpty checks a list that must have something.
func notEmpty[T any](key string, list []T) error {
	if len(list) == 0 {
		return wrongf(key, "%s is empty: it must have at least one element", key)
	}
	return nil
}

// patterns checks a list of patterns as of file names.
func patterns(key string, list []string) error {
	for i, pattern := range list {
		if _, err := path.Match(pattern, ""); err != nil {
			return element(i, wrongf(key, "%s has %q, which is not a pattern such as LC_*", key, pattern))
		}
	}
	return nil
}
