//go:build linux || darwin

package server

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/sshd"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A reload changes what new sessions get, and says what has to wait for a restart.
func TestReload(t *testing.T) {
	onHost(t, func(h *host) {
		old := h.attach()
		next := *h.settings
		next.ExitedTTL, next.AcceptEnv = configs.Duration{Duration: 2 * time.Hour}, nil
		next.LogFormat, next.MaxUnauthenticated = "json", 7
		h.server.Reload(&next)
		h.log.await(t, `event=reload settings=exited_ttl`, 1)
		h.log.await(t, `after a restart of the daemon" settings="max_unauthenticated log_format"`, 1)
		h.server.Reload(&next)
		h.log.await(t, `event=reload settings=""`, 1)
		fresh := h.attach()
		h.holders.Kill()
		time.Sleep(3 * time.Hour)
		if ids := h.holders.Sessions(0); !slices.Equal(ids, []wire.SessionID{old.ID}) {
			t.Errorf("the sessions %v are left, want %v: %v is newer than the reload", ids, old.ID, fresh.ID)
		}
	})
}

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
		s := &Server{all: true, log: slog.New(slog.NewTextHandler(&text, nil)), sshd: sshd.Daemon{Files: []string{test.sshd}}}
		settings.SSHDPolicy = test.policy
		if err := s.adopt(settings); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text.String(), "is not used"); got != test.want {
			t.Errorf("%s, %s: %d settings, want %d: %s", test.policy, test.sshd, got, test.want, text.String())
		}
	}
}

func TestReloadedSettingsExist(t *testing.T) {
	var keys []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[configs.Server]()) {
		keys = append(keys, f.Tag.Get("toml"))
	}
	for _, key := range reloaded {
		if !slices.Contains(keys, key) {
			t.Errorf("there is no setting %s", key)
		}
	}
}
