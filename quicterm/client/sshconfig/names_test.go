package sshconfig

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config", "Include more-*\nHost web db*\n\tHostName 192.0.2.1\nhost=\"mail\" !old web\n"+
		"# Host comment\nHost *\n  User anna\nMatch host other\nHostName no\nInclude config\n")
	write("more-1", "Host build\r\n")
	write("more-2", "Include "+filepath.Join(dir, "missing")+"\nHost arm")
	if got, want := Names(filepath.Join(dir, "config")), []string{"arm", "build", "mail", "web"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Names(filepath.Join(dir, "missing")); got != nil {
		t.Errorf("a missing file names %q", got)
	}
}
