package sshconfig

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"strings"
)

// An expander replaces what stands for something else in an argument: a tilde, tokens and environment variables.
type expander struct {
	home   string
	tokens map[string]string
}

func newExpander(h *Host, me *user.User, alias string) *expander {
	local, _ := os.Hostname() // without a name it is empty, as for ssh
	short, _, _ := strings.Cut(local, ".")
	port := strconv.Itoa(int(h.Port))
	hash := sha1.Sum([]byte(local + h.Hostname + port + h.User))
	return &expander{
		home: me.HomeDir,
		tokens: map[string]string{
			"%%": "%",
			"%C": hex.EncodeToString(hash[:]),
			"%d": me.HomeDir,
			"%h": h.Hostname,
			"%i": me.Uid,
			"%k": alias,
			"%L": short,
			"%l": local,
			"%n": h.Name,
			"%p": port,
			"%r": h.User,
			"%u": me.Username,
		},
	}
}

// replaceable matches a token or an environment variable.
var replaceable = regexp.MustCompile(`%.|\$\{[^}]*\}`)

// files expands file names. It leaves out those with a token or a variable that has no value, as ssh does.
func (x *expander) files(names []string) []string {
	var expanded []string
	for _, name := range names {
		if name, known := x.replace(x.tilde(name)); known {
			expanded = append(expanded, name)
		}
	}
	return expanded
}

// replace replaces tokens and variables. It reports whether all have a value.
func (x *expander) replace(arg string) (replaced string, known bool) {
	known = true
	replaced = replaceable.ReplaceAllStringFunc(arg, func(s string) string {
		value, ok := x.tokens[s]
		if s[0] == '$' {
			value, ok = os.LookupEnv(s[2 : len(s)-1])
		}
		known = known && ok
		return value
	})
	return replaced, known
}

// tilde replaces ~ and ~user at the start of a file name by a home directory.
func (x *expander) tilde(name string) string {
	if !strings.HasPrefix(name, "~") {
		return name
	}
	account, rest, slash := strings.Cut(name[1:], "/")
	home := x.home
	if account != "" {
		u, err := user.Lookup(account)
		if err != nil {
			return name
		}
		home = u.HomeDir
	}
	if slash {
		return home + "/" + rest
	}
	return home
}
