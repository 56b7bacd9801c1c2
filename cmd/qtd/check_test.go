//go:build linux || darwin

package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
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
		{"maxauthtries", "6", "sshd -T"},
	} {
		if got := sourceInSSHD([]string{"/none", file}, test.keyword, test.value); got != test.want {
			t.Errorf("%s %s: %s, want %s", test.keyword, test.value, got, test.want)
		}
	}
	settings := "# allow_groups = []\nallow_users = []\n  sshd_policy = \"ignore\"\n"
	for setting, want := range map[string]string{
		"allow_users": "qtd.toml:2", "sshd_policy": "qtd.toml:3", "allow_groups": "default", "users": "default",
	} {
		if got := sourceOf("qtd.toml", settings, setting); got != want {
			t.Errorf("%s: %s, want %s", setting, got, want)
		}
	}
}

// A key is read from a regular file of a moderate size only.
func TestReadKey(t *testing.T) {
	dir := t.TempDir()
	good, large, pipe := filepath.Join(dir, "good"), filepath.Join(dir, "large"), filepath.Join(dir, "pipe")
	err := errors.Join(
		os.WriteFile(good, []byte("key"), 0o600), os.WriteFile(large, make([]byte, maxKey+1), 0o600), syscall.Mkfifo(pipe, 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readKey(good); err != nil || string(got) != "key" {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{large, pipe, dir} {
		if _, err := readKey(name); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}
