//go:build linux || darwin

package monitor

import (
	"reflect"
	"slices"
	"testing"

	"github.com/quicterm/quicterm/configs"
)

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
