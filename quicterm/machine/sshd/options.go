//go:build linux || darwin

package sshd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// An Installation is the sshd of this machine.
type Installation struct {
	File    string   // of the program
	Options []string // of its command line, those that say who gets in
	From    string   // where they come from: a process or a file; empty if there is no source of them

	process, started string // of the process
}

// String returns the command line, and where its options come from.
func (i *Installation) String() string {
	line := strings.Join(append([]string{i.File}, i.Options...), " ")
	if i.From != "" {
		line += " (options of " + i.From + ")"
	}
	return line
}

// maxConfig bounds what is read of a file with options, in bytes.
const maxConfig = 1 << 20

const (
	// options are those of sshd(8), with a colon behind each that has an argument.
	options = "46DdeqrC:E:b:c:f:g:h:k:o:p:u:GRTVQ:it"

	// passed are the options that sshd -T is given: configuration, settings, host keys and ports.
	passed = "foph"

	// unfit are the options of an sshd that does not listen.
	unfit = "CGRTVQit"
)

// freeText are the settings in small letters whose values may have words like options of sshd.
var freeText = []string{
	"forcecommand", "authorizedkeyscommand", "authorizedprincipalscommand", "subsystem", "setenv", "match",
	"versionaddendum",
}

// parseOptions returns the options of a command line, without the name of the program, that sshd -T is to be given.
// joined says that the arguments were joined by spaces and split again: then a value with spaces is one of several
// words. The error says why they cannot be told.
func parseOptions(args []string, joined bool) (options []string, err error) {
	for i := 0; i < len(args); i++ {
		letters, ok := strings.CutPrefix(args[i], "-")
		if !ok || letters == "" {
			return nil, fmt.Errorf("%q is no option", args[i])
		}
		for letters != "" {
			letter := letters[:1]
			letters = letters[1:]
			known, hasValue := lookOption(letter)
			if !known || strings.Contains(unfit, letter) {
				return nil, fmt.Errorf("-%s is no option of an sshd that listens", letter)
			}
			if !hasValue {
				continue
			}
			value := letters
			letters = ""
			if value == "" {
				if i++; i == len(args) {
					return nil, fmt.Errorf("-%s has no value", letter)
				}
				value = args[i]
			}
			for joined && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				value += " " + args[i]
			}
			if !strings.Contains(passed, letter) {
				continue
			}
			if err := checkOption(letter, value, joined && i+1 < len(args)); err != nil {
				return nil, err
			}
			options = append(options, "-"+letter, value)
		}
	}
	return options, nil
}

// lookOption reports whether there is an option, and whether it has a value.
func lookOption(letter string) (known, hasValue bool) {
	i := strings.Index(options, letter)
	return i >= 0 && letter != ":", i >= 0 && strings.HasPrefix(options[i+1:], ":")
}

// checkOption returns why a value cannot be passed on. open says that words follow that may belong to it.
func checkOption(letter, value string, open bool) error {
	switch letter {
	case "f", "h":
		if !filepath.IsAbs(value) { // it depends on the directory that sshd was started in
			return fmt.Errorf("-%s %s: the path does not begin with /", letter, value)
		}
	case "o":
		end := strings.IndexAny(value, "= \t")
		if end < 0 {
			return fmt.Errorf("-o %s has no value", value)
		}
		keyword := strings.ToLower(value[:end])
		for _, free := range freeText {
			if open && keyword == free {
				return fmt.Errorf("-o %s: what follows may be part of it or not; write it into the configuration file", value)
			}
		}
	}
	return nil
}

// parseTitle returns the arguments of a process that listens, from its command line in /proc, and whether they were
// joined by spaces: OpenSSH replaces them by a title, "sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups". ok is
// false for a process that serves a login.
func parseTitle(cmdline string) (args []string, joined, ok bool, err error) {
	cmdline = strings.TrimRight(cmdline, "\x00")
	title, isTitle := strings.CutPrefix(cmdline, "sshd: ")
	if !isTitle {
		return strings.Split(cmdline, "\x00")[1:], false, true, nil
	}
	line, _, listens := cutLast(title, " [listener]")
	switch {
	case listens:
		return strings.Split(line, " ")[1:], true, true, nil
	case strings.HasPrefix(title, "/"):
		return nil, false, true, fmt.Errorf("its title was cut: %q", title)
	}
	return nil, false, false, nil
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// A variable is one of a file that has options for the unit or the start script of sshd.
type variable struct{ file, name string }

// optionVariables are those of Debian, Red Hat, SUSE and Alpine.
var optionVariables = []variable{
	{"/etc/default/ssh", "SSHD_OPTS"}, {"/etc/sysconfig/sshd", "OPTIONS"}, {"/etc/sysconfig/ssh", "SSHD_OPTS"},
	{"/etc/conf.d/sshd", "SSHD_OPTS"},
}

// fileOptions returns the options that the first of some files has. They count while no sshd runs: it may be started
// with the first connection.
func fileOptions(variables []variable) (options []string, from string, err error) {
	for _, v := range variables {
		content, _, err := auth.ReadFile(v.file, maxConfig)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			var words []string
			if words, err = parseVariable(string(content), v.name); err == nil {
				options, err = parseOptions(words, true)
			}
		}
		if err != nil {
			return nil, "", fmt.Errorf("%s in %s: %w", v.name, v.file, err)
		}
		if options != nil {
			return options, v.name + " in " + v.file, nil
		}
	}
	return nil, "", nil
}

// parseVariable returns the words of a variable that a file for the shell or for systemd sets, or none.
func parseVariable(content, name string) (words []string, err error) {
	for line := range strings.Lines(content) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		value, ok := strings.CutPrefix(line, name+"=")
		if !ok {
			continue
		}
		for _, quote := range []string{`"`, `'`} {
			if inner, ok := strings.CutPrefix(value, quote); ok && strings.HasSuffix(inner, quote) {
				value = strings.TrimSuffix(inner, quote)
				break
			}
		}
		if strings.ContainsAny(value, "\"'\\$`#") { // the shell and systemd differ about these
			return nil, fmt.Errorf("%q has quotes or other special characters", value)
		}
		words = strings.Fields(value)
	}
	return words, nil
}
