package sshconfig

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxDepth bounds how deep files include each other, as in ssh.
const maxDepth = 16

// Names returns the hosts that a file names in its Host lines, and the files that it includes,
// sorted. It leaves out patterns, and files that cannot be read.
func Names(file string) []string {
	names := namesIn(file, 0)
	slices.Sort(names)
	return slices.Compact(names)
}

func namesIn(file string, depth int) (names []string) {
	content, err := os.ReadFile(file)
	if err != nil || depth > maxDepth {
		return nil
	}
	for line := range strings.Lines(string(content)) {
		fields := words(strings.Replace(strings.TrimSpace(line), "=", " ", 1))
		if len(fields) == 0 {
			continue
		}
		switch strings.ToLower(fields[0]) {
		case "host":
			for _, name := range fields[1:] {
				if !strings.ContainsAny(name, "*?!#") {
					names = append(names, name)
				}
			}
		case "include":
			for _, pattern := range fields[1:] {
				for _, included := range includes(file, pattern) {
					names = append(names, namesIn(included, depth+1)...)
				}
			}
		}
	}
	return names
}

// includes returns the files that the pattern of an Include line means.
func includes(file, pattern string) []string {
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil
		}
		pattern = filepath.Join(home, rest)
	} else if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(filepath.Dir(file), pattern)
	}
	files, _ := filepath.Glob(pattern) // which fails only for a bad pattern
	return files
}
