//go:build linux || darwin

package sshd

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// usualConfigs are the files that programs of sshd read without -f, depending on how they were built.
var usualConfigs = []string{
	"/etc/ssh/sshd_config", "/usr/local/etc/ssh/sshd_config", "/usr/etc/ssh/sshd_config", "/etc/sshd_config",
}

// otherFiles are those that Match Group and Match User depend on, as far as they are on this machine.
var otherFiles = []string{"/etc/passwd", "/etc/group"}

const (
	// maxIncluded bounds the files that are looked at. sshd includes 16 levels of files.
	maxIncluded = 1000

	// maxConfig bounds what is read of a file, in bytes.
	maxConfig = 1 << 20
)

// state returns a text that changes when what sshd -T answers may change: the program, its options, and the files of
// its configuration, also those that it includes.
func (i *Installation) state() string {
	configs := usualConfigs
	for n, option := range i.Options {
		if option == "-f" {
			configs = []string{i.Options[n+1]}
		}
	}
	s := &stamps{seen: make(map[string]bool)}
	fmt.Fprintf(&s.text, "%s %q\n", i.File, i.Options)
	for _, file := range append([]string{i.File}, otherFiles...) {
		s.add(file)
	}
	for _, file := range configs {
		s.addConfig(file)
	}
	return s.text.String()
}

// stamps are times, sizes and numbers of files.
type stamps struct {
	text strings.Builder
	seen map[string]bool
}

// add adds that of a file. It reports whether there is one that was not added before.
func (s *stamps) add(file string) bool {
	var stat syscall.Stat_t
	if s.seen[file] || len(s.seen) >= maxIncluded || syscall.Stat(file, &stat) != nil {
		return false
	}
	s.seen[file] = true
	modified, changed := stampTimes(&stat)
	fmt.Fprintf(&s.text, "%s %d %d %d %d %d\n", file, stat.Dev, stat.Ino, stat.Size, modified, changed)
	return true
}

// addConfig adds those of a file of sshd's configuration, and of what it includes.
func (s *stamps) addConfig(file string) {
	if !s.add(file) {
		return
	}
	content, _, err := auth.ReadFile(file, maxConfig)
	if err != nil {
		return // sshd -T says so
	}
	for line := range strings.Lines(string(content)) {
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n=\"", r) })
		if len(words) == 0 || !strings.EqualFold(words[0], "include") {
			continue
		}
		for _, pattern := range words[1:] {
			patterns := []string{pattern}
			if !filepath.IsAbs(pattern) {
				patterns = nil
				for _, usual := range usualConfigs {
					patterns = append(patterns, filepath.Join(filepath.Dir(usual), pattern))
				}
			}
			for _, pattern := range patterns {
				files, _ := filepath.Glob(pattern)
				slices.Sort(files)
				for _, included := range files {
					s.addConfig(included)
				}
			}
		}
	}
}
