//go:build linux || darwin

package access

import (
	"fmt"
	"os"
	"reflect"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"
)

// CheckSettings returns a mistake in the rules for logins, as a [configs.Wrong]: one that sshd would refuse, a pattern
// that nothing can match, or a setting that has no effect beside an sshd whose configuration is obeyed. granted says
// whether they are for a granted daemon, which serves only its own account.
func CheckSettings(s *configs.Server, granted bool) error {
	if _, err := ownPolicy(s); err != nil {
		return err
	}
	if os.Geteuid() != 0 || granted {
		return nil
	}
	if err := replaced(s); err != nil && s.SSHDPolicy == "follow" && new(sshd.Daemon).Installed() {
		return err
	}
	return nil
}

// replaced returns the error of a setting that has no effect beside an sshd whose configuration is obeyed, or nil if
// none is set.
func replaced(s *configs.Server) error {
	given, usual := reflect.ValueOf(s).Elem(), reflect.ValueOf(configs.DefaultServer()).Elem()
	for i := range given.NumField() {
		key := given.Type().Field(i).Tag.Get("toml")
		item := sshd.Replaced(key)
		if item != "" && !reflect.DeepEqual(given.Field(i).Interface(), usual.Field(i).Interface()) {
			return &configs.Wrong{Key: key, Element: -1, Err: fmt.Errorf(
				`%s has no effect: sshd's %s takes its place; remove it, or set sshd_policy = "ignore"`, key, item)}
		}
	}
	return nil
}

// ownPolicy returns the policy of the daemon's own settings. The error of a mistake is a [configs.Wrong].
func ownPolicy(s *configs.Server) (*sshd.Policy, error) {
	policy := sshd.NewOwn()
	for _, list := range []struct {
		keyword string
		values  []string
	}{{"allowusers", s.AllowUsers}, {"allowgroups", s.AllowGroups}, {"authorizedkeysfile", s.AuthorizedKeysFiles}} {
		for i, value := range list.values {
			if err := policy.Add(sshd.Setting{Keyword: list.keyword, Value: value}); err != nil {
				return nil, &configs.Wrong{Key: sshd.OwnName(list.keyword), Element: i, Err: err}
			}
		}
	}
	return policy, policy.Add(sshd.Setting{Keyword: "trustedusercakeys", Value: s.TrustedUserCAKeys})
}
