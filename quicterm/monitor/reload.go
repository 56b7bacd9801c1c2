//go:build linux || darwin

package monitor

import (
	"reflect"
	"slices"
	"strings"

	"github.com/quicterm/quicterm/configs"
)

// reloaded are the settings that Reload changes, for logins and sessions that begin after it. What the others have
// made lasts as long as the daemon: sockets, keys, directories, and limits by which connections are counted.
var reloaded = []string{
	"authorized_keys_files", "trusted_user_ca_keys", "allow_users", "allow_groups", "sshd_policy",
	"buffer_size", "detached_ttl", "persist", "persist_dir",
	"accept_env", "auth_timeout", "log_level",
}

// settings returns the settings as they are now. The caller changes nothing of them.
func (s *Monitor) settings() *configs.Server { return s.current.Load() }

// adopt makes the daemon use settings.
func (s *Monitor) adopt(settings *configs.Server) error {
	if err := s.access.Adopt(settings); err != nil {
		return err
	}
	s.current.Store(settings)
	return nil
}

// Reload makes the daemon use other settings, as far as it can without a restart, and logs which
// those are. The level of the log is the caller's.
func (s *Monitor) Reload(settings *configs.Server) {
	merged := *s.settings()
	var changed, waiting []string
	before, after := reflect.ValueOf(&merged).Elem(), reflect.ValueOf(settings.WithDefaults()).Elem()
	for i := range before.NumField() {
		key := before.Type().Field(i).Tag.Get("toml")
		switch {
		case reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()):
		case slices.Contains(reloaded, key):
			before.Field(i).Set(after.Field(i))
			changed = append(changed, key)
		default:
			waiting = append(waiting, key)
		}
	}
	if err := s.adopt(&merged); err != nil {
		s.log.Error("the settings stay as they are", "error", err)
		return
	}
	s.web.Read()
	s.update()
	s.log.Info("settings are read again", "event", "reload", "settings", strings.Join(changed, " "))
	if len(waiting) > 0 {
		s.log.Warn("these settings have changed and take effect after a restart of the daemon",
			"settings", strings.Join(waiting, " "))
	}
}
