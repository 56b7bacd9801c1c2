//go:build linux || darwin

package sshd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// ownMaxTries bounds the keys that a client may try in vain where no sshd says: an agent may have dozens.
const ownMaxTries = 64

// NewOwn returns the policy of the daemon's own settings, which hold where no sshd's do.
func NewOwn() *Policy {
	p := newPolicy()
	p.isOwn, p.pam, p.rootLogin, p.maxTries = true, true, "yes", ownMaxTries
	return p
}

// Add adds one of the daemon's own settings, of a list one element. The error says what is wrong with it.
func (p *Policy) Add(s Setting) error {
	files := p.Sources.Files
	err := errors.Join(p.set(s.Keyword, s.Value), checkOwn(s))
	if s.Keyword == "authorizedkeysfile" { // one of several, and not words
		p.Sources.Files = append(files, s.Value)
	}
	if err != nil {
		return fmt.Errorf("%s %.100q: %w", ownNames[s.Keyword], s.Value, err)
	}
	return nil
}

// checkOwn returns what is wrong with a setting that would fail only at a login, or that nothing can match.
func checkOwn(s Setting) (err error) {
	switch s.Keyword {
	case "allowusers":
		user, hosts, limited := strings.Cut(s.Value, "@")
		if err := checkName(user); err != nil {
			return err
		}
		for pattern := range strings.SplitSeq(hosts, ",") {
			if pattern = strings.TrimPrefix(pattern, "!"); limited && err == nil {
				err = checkHost(pattern)
			}
		}
	case "allowgroups":
		if s.Value == "" {
			err = errors.New("an empty pattern")
		}
	case "authorizedkeysfile":
		_, err = Expand(s.Value, map[byte]string{'h': "", 'u': "", 'U': ""})
	}
	return err
}

// checkName returns why no account can match a pattern.
func checkName(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("an empty pattern")
	case strings.ContainsAny(pattern, " \t\n,"):
		return errors.New("no account can match it: each pattern is a string of its own in the list")
	}
	return nil
}

// checkHost returns why no client can match a pattern behind an @.
func checkHost(pattern string) error {
	network, err := auth.ParseNetwork(pattern)
	switch {
	case err != nil:
		return err
	case !network.IsValid() && strings.Contains(pattern, "/"):
		return fmt.Errorf("%q is not a network", pattern)
	case strings.ContainsAny(pattern, " \t\n@"):
		return fmt.Errorf("no client can match %q", pattern)
	}
	return nil
}

// A Rule is a setting that is in force.
type Rule struct {
	Setting
	Own bool // of the daemon, by its own name; else of sshd
}

// Rules returns the settings, in the order in which they were given.
func (p *Policy) Rules() (rules []Rule) {
	for _, s := range p.rules {
		if p.isOwn {
			s.Keyword = ownNames[s.Keyword]
		}
		rules = append(rules, Rule{Setting: s, Own: p.isOwn})
	}
	return rules
}

// ownNames are the names of the daemon's own settings for those of sshd that take their place.
var ownNames = map[string]string{
	"allowusers": "allow_users", "allowgroups": "allow_groups",
	"authorizedkeysfile": "authorized_keys_files", "trustedusercakeys": "trusted_user_ca_keys",
}

// OwnName returns the name of the daemon's own setting for an item of sshd, in small letters.
func OwnName(keyword string) string { return ownNames[keyword] }

// Replaced returns the item of sshd that takes the place of one of the daemon's own settings where
// sshd's configuration is obeyed, or nothing.
func Replaced(own string) string {
	for _, item := range []string{"AllowUsers", "AllowGroups", "AuthorizedKeysFile", "TrustedUserCAKeys"} {
		if own != "" && ownNames[strings.ToLower(item)] == own {
			return item
		}
	}
	return ""
}
