//go:build linux || darwin

package sshd

import "strings"

// A Rule is a setting that is in force, or would be if sshd's did not take its place.
type Rule struct {
	Setting
	Own      bool   // of the daemon, by its own name; else of sshd
	Replaced string // the item of sshd that takes its place, or empty
}

// Rules returns the settings, in the order in which they were given.
func (p *Policy) Rules() (rules []Rule) {
	for _, s := range p.rules {
		if p.isOwn {
			s.Keyword = ownNames[s.Keyword]
		}
		rules = append(rules, Rule{Setting: s, Own: p.isOwn})
	}
	if p.own != nil {
		for _, r := range p.own.Rules() {
			r.Replaced = Replaced(r.Keyword)
			rules = append(rules, r)
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

// OwnName returns the name of the daemon's own setting for an item of sshd, in small letters.
func OwnName(keyword string) string { return ownNames[keyword] }

// Replaced returns the item of sshd that takes the place of one of the daemon's own settings where
// sshd's configuration is obeyed, or nothing if both hold.
func Replaced(own string) string {
	switch own {
	case "authorized_keys_files":
		return "AuthorizedKeysFile"
	case "strict_modes":
		return "StrictModes"
	case "authorized_keys_command":
		return "AuthorizedKeysCommand"
	case "authorized_keys_command_user":
		return "AuthorizedKeysCommandUser"
	case "trusted_user_ca_keys":
		return "TrustedUserCAKeys"
	case "authorized_principals_file":
		return "AuthorizedPrincipalsFile"
	}
	return ""
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
