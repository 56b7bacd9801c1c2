//go:build linux || darwin

package monitor

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/sshd"
)

// Settings whose place sshd's take are named in the log, unless they are as they are by default.
func TestReplacedSettings(t *testing.T) {
	settings := configs.DefaultServer()
	settings.StrictModes, settings.TrustedUserCAKeys, settings.DenyUsers = "off", "/etc/ca", []string{"jo"}
	for _, test := range []struct {
		policy, sshd string
		want         int
	}{
		{"follow", "/", 2}, {"follow", "/none/sshd", 0}, {"ignore", "/", 0},
	} {
		var text strings.Builder
		s := &Monitor{all: true, log: slog.New(slog.NewTextHandler(&text, nil)), sshd: sshd.Daemon{Files: []string{test.sshd}}}
		settings.SSHDPolicy = test.policy
		if err := s.adopt(settings); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text.String(), "is not used"); got != test.want {
			t.Errorf("%s, %s: %d settings, want %d: %s", test.policy, test.sshd, got, test.want, text.String())
		}
	}
}
