//go:build linux || darwin

package server

import (
	"reflect"
	"slices"
	"strings"

	"github.com/quicterm/quicterm/configs"
)

// reloaded are the settings that Reload changes, for logins and sessions that begin after it. What the
// others have made lasts as long as the daemon: sockets, keys, directories, and limits by which
// connections are counted.
var reloaded = []string{
	"authorized_keys_files", "sshd_policy", "buffer_size", "detached_ttl", "exited_ttl", "pipe_ttl", "recording", "recording_dir",
	"accept_env", "max_watchers", "auth_timeout", "log_level",
}

// settings returns the settings as they are now. The caller changes nothing of them.
func (s *Server) settings() *configs.Server { return s.current.Load() }

// Reload makes the daemon use other settings, as far as it can without a restart, and logs which
// those are. The level of the log is the caller's.
func (s *Server) Reload(settings *configs.Server) {
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
	s.current.Store(&merged)
	s.log.Info("settings are read again", "event", "reload", "settings", strings.Join(changed, " "))
	if len(waiting) > 0 {
		s.log.Warn("these settings have changed and take effect after a restart of the daemon", "settings", strings.Join(waiting, " "))
	}
}
