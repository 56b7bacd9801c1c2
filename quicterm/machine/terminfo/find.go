package terminfo

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Dirs are where the entries of a system are, if the environment names no other directories.
var Dirs = []string{
	"/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo", "/usr/local/share/terminfo",
	"/opt/homebrew/share/terminfo", "/usr/share/misc/terminfo",
}

// common are the terminals that systems with ncurses have known for decades. A name that ends with - or . stands for
// those that begin with it.
var common = []string{
	"ansi", "cygwin", "dumb", "linux", "linux-", "rxvt", "rxvt-", "screen", "screen-", "screen.", "tmux", "tmux-",
	"unknown", "vt100", "vt102", "vt220", "xterm", "xterm-16color", "xterm-256color", "xterm-color", "xterm-mono",
}

// Common reports whether each server knows a terminal.
func Common(term string) bool {
	for _, name := range common {
		if term == name || strings.ContainsAny(name[len(name)-1:], "-.") && strings.HasPrefix(term, name) {
			return true
		}
	}
	return false
}

// Find returns the compiled entry of a terminal, where ncurses finds it in an environment. An error may be
// [fs.ErrNotExist]. It looks into files of at most MaxSize bytes only, and does not check what they have.
func Find(term string, getenv func(string) string) ([]byte, error) {
	if !ValidName(term) {
		return nil, fmt.Errorf("no terminal has the name %q", term)
	}
	dirs := []string{getenv("TERMINFO")}
	if home := getenv("HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, ".terminfo"))
	}
	if list := getenv("TERMINFO_DIRS"); list != "" {
		dirs = append(dirs, strings.Split(list, ":")...)
	}
	dirs = append(dirs, Dirs...)
	err := fmt.Errorf("%s: %w", term, os.ErrNotExist)
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue // an empty one stands for those of the system
		}
		for _, file := range Paths(term) {
			b, readErr := readFile(filepath.Join(dir, file))
			if readErr == nil {
				return b, nil
			}
			if !os.IsNotExist(readErr) {
				err = readErr
			}
		}
	}
	return nil, err
}

// Paths returns where the entry of a terminal may be in a directory of entries. Where the names of files have no upper
// case, ncurses has the first byte in hex.
func Paths(term string) []string {
	return []string{filepath.Join(term[:1], term), filepath.Join(fmt.Sprintf("%x", term[0]), term)}
}

func readFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > MaxSize) {
		err = fmt.Errorf("%s is no terminfo entry", file)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxSize))
}
