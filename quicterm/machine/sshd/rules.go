//go:build linux || darwin

package sshd

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
// sshd's configuration is obeyed, in small letters, or nothing.
func Replaced(own string) string {
	for item, name := range ownNames {
		if name == own {
			return item
		}
	}
	return ""
}
