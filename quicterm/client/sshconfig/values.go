package sshconfig

import (
	"os"
	"slices"
	"strings"
)

// values has the arguments of each option, by its name in lower case.
type values map[string][]string

func (v values) one(option, fallback string) string {
	if args := v[option]; len(args) > 0 && args[0] != "" {
		return args[0]
	}
	return fallback
}

// isSet reports whether an option is yes.
func (v values) isSet(option string) bool {
	arg := v.one(option, "no")
	return arg == "yes" || arg == "true"
}

// isOff reports whether an option is no.
func (v values) isOff(option string) bool {
	arg := v.one(option, "yes")
	return arg == "no" || arg == "false"
}

// list returns the file names that an option lists, without none.
func (v values) list(option string, fallback []string) []string {
	args := v[option]
	if len(args) == 0 {
		args = fallback
	}
	var names []string
	for _, arg := range args {
		names = append(names, join(words(arg))...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "none" })
}

// names returns the comma-separated names of an option, or nil.
func (v values) names(option string) []string {
	if arg := v.one(option, ""); arg != "" {
		return strings.Split(arg, ",")
	}
	return nil
}

// words splits at space that is not within double quotes.
func words(s string) []string {
	var all []string
	var word strings.Builder
	quoted, inside := false, false
	end := func() {
		if inside {
			all = append(all, word.String())
		}
		word.Reset()
		inside = false
	}
	for _, r := range s {
		switch {
		case r == '"':
			quoted, inside = !quoted, true
		case !quoted && (r == ' ' || r == '\t'):
			end()
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	end()
	return all
}

// join joins words that are the name of a file together, and not alone: what `ssh -G` prints has no quotes.
func join(all []string) []string {
	exists := func(name string) bool { _, err := os.Stat(name); return err == nil }
	var names []string
	for len(all) > 0 {
		n := 1
		if !exists(all[0]) {
			for k := 2; k <= len(all); k++ {
				if exists(strings.Join(all[:k], " ")) {
					n = k
					break
				}
			}
		}
		names = append(names, strings.Join(all[:n], " "))
		all = all[n:]
	}
	return names
}
