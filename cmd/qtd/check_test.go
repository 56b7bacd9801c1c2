//go:build linux || darwin

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Where a rule comes from.
func TestSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sshd_config")
	content := "# AllowUsers x\nPermitRootLogin no\n\nMatch User jo\n  allowusers jo al\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ keyword, value, want string }{
		{"permitrootlogin", "no", file + ":2"},
		{"allowusers", "al", file + ":5"},
		{"allowusers", "x", "sshd -T"},
		{"maxauthtries", "6", "sshd's default"},
	} {
		if got := sourceInSSHD([]string{"/none", file}, test.keyword, test.value); got != test.want {
			t.Errorf("%s %s: %s, want %s", test.keyword, test.value, got, test.want)
		}
	}
	settings := "# deny_users = []\nallow_users = []\n  permit_root_login = \"no\"\n"
	for setting, want := range map[string]string{
		"allow_users": "qtd.toml:2", "permit_root_login": "qtd.toml:3", "deny_users": "default", "users": "default",
	} {
		if got := sourceOf("qtd.toml", settings, setting); got != want {
			t.Errorf("%s: %s, want %s", setting, got, want)
		}
	}
}
