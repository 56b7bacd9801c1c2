//go:build linux || darwin

package access

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"
)

// A setting whose place sshd's takes is a mistake, unless it is as it is by default.
func TestReplacedSettings(t *testing.T) {
	for key, change := range map[string]func(*configs.Server){
		"":                      func(s *configs.Server) { s.AcceptEnv = []string{"A"} },
		"authorized_keys_files": func(s *configs.Server) { s.AuthorizedKeysFiles = []string{"/etc/keys/%u"} },
		"trusted_user_ca_keys":  func(s *configs.Server) { s.TrustedUserCAKeys = "/etc/ca" },
		"allow_users":           func(s *configs.Server) { s.AllowUsers = []string{"jo"} },
		"allow_groups":          func(s *configs.Server) { s.AllowGroups = []string{"staff"} },
	} {
		for _, test := range []struct {
			policy, sshd string
			wrong        bool
		}{
			{"follow", "/", key != ""}, {"follow", "/none/sshd", false}, {"ignore", "/", false},
		} {
			settings := configs.DefaultServer()
			change(settings)
			settings.SSHDPolicy = test.policy
			d := &Decider{all: true, sshd: sshd.Daemon{Files: []string{test.sshd}}}
			err := d.Adopt(settings)
			wrong, _ := errors.AsType[*configs.Wrong](err)
			if (err != nil) != test.wrong || test.wrong && wrong.Key != key || (d.rules.Load() == nil) != test.wrong {
				t.Errorf("%s, %s, %s: %v", key, test.policy, test.sshd, err)
			}
			if key == "" || test.policy != "follow" || test.wrong {
				continue
			}
			d.sshd.Files = []string{"/"} // is installed now
			if _, err := d.policy(t.Context(), new(account.Account), netip.Addr{}, netip.Addr{}); !errors.As(err, &wrong) {
				t.Errorf("%s: with an sshd that is installed later: %v", key, err)
			}
		}
	}
}

// A mistake in a rule names the element of the list.
func TestCheckSettings(t *testing.T) {
	settings := configs.DefaultServer()
	settings.AllowUsers, settings.AllowGroups = []string{"al", "jo@10.0.0.0/33"}, []string{"staff"}
	err := CheckSettings(settings, true)
	if wrong, ok := errors.AsType[*configs.Wrong](err); !ok || wrong.Key != "allow_users" || wrong.Element != 1 {
		t.Errorf("got %+v", err)
	}
}
