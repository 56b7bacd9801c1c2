//go:build linux || darwin

package sshd

import (
	"slices"
	"strings"
)

// A Rule is a setting that is in force.
type Rule struct {
	Setting
	Own bool // of the daemon, by its own name; else of sshd
}

// Rules returns the settings that are in force, in the order in which they were given. Where sshd's are
// obeyed, the daemon's own are left out whose place those take.
func (p *Policy) Rules() (rules []Rule) {
	for _, s := range p.rules {
		if p.isOwn {
			s.Keyword = ownNames[s.Keyword]
		}
		rules = append(rules, Rule{s, p.isOwn})
	}
	if p.own != nil {
		for _, r := range p.own.Rules() {
			if !slices.Contains(replaced, r.Keyword) {
				rules = append(rules, r)
			}
		}
	}
	return rules
}

// ownNames are the names of the daemon's own settings for those of sshd.
var ownNames = map[string]string{
	"allowusers": "allow_users", "denyusers": "deny_users", "allowgroups": "allow_groups", "denygroups": "deny_groups",
	"permitrootlogin": "permit_root_login", "maxauthtries": "max_auth_tries", "revokedkeys": "revoked_keys",
	"authorizedkeysfile": "authorized_keys_files", "strictmodes": "strict_modes",
	"authorizedkeyscommand": "authorized_keys_command", "authorizedkeyscommanduser": "authorized_keys_command_user",
	"trustedusercakeys": "trusted_user_ca_keys", "authorizedprincipalsfile": "authorized_principals_file",
}

// replaced are the own settings whose place those of sshd take.
var replaced = []string{
	"authorized_keys_files", "strict_modes", "authorized_keys_command", "authorized_keys_command_user",
	"trusted_user_ca_keys", "authorized_principals_file",
}

// ownName returns the name of the daemon's own setting for one of sshd.
func ownName(setting string) string {
	name, value, found := strings.Cut(setting, " ")
	name = ownNames[strings.ToLower(name)]
	if found {
		name += " " + value
	}
	return name
}
