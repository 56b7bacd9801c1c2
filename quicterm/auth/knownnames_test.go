package auth

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestKnownNames(t *testing.T) {
	const key = " ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3sdMMxHqN1rVVOzHfYBtWd1jTzJ3Lr6sCGPFqDFhOE\n"
	file := filepath.Join(t.TempDir(), "known_hosts")
	content := "web,192.0.2.7" + key + "[db]:2222" + key + "[2001:db8::1]:4433" + key + "web" + key + "*.example.org,!old" + key +
		"|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg=" + key + "@cert-authority trusted" + key + "@revoked bad" + key + "no key\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"192.0.2.7", "2001:db8::1", "db", "web"}
	if got := KnownNames([]string{file, file + ".missing"}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
