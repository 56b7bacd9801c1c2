package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
)

// A login leads through the jump hosts that ssh would use, in its order, and not in circles.
func TestJumps(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	content := `
Host chain
	ProxyJump first:99,second
Host first
	ProxyJump zeroth
	User ann
Host second
	ProxyJump none
	HostKeyAlias known
	Port 2222
Host self
	ProxyJump self
Host ping
	ProxyJump pong
Host pong
	ProxyJump ping
Host command
	ProxyCommand nc %h %p
Host by-command
	ProxyJump command
`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	for name, want := range map[string]string{
		"chain":      "zeroth:22 ann@first:99 second:2222",
		"self":       "",
		"ping":       "error: ssh's configuration has too many jump hosts",
		"command":    "error: ssh's configuration for command has a ProxyCommand",
		"by-command": "error: ssh's configuration for command has a ProxyCommand",
	} {
		to, err := sshconfig.Load(t.Context(), sshconfig.Query{Host: name, User: "me", File: file})
		if err != nil {
			t.Fatal(err)
		}
		hops, err := jumps(t.Context(), to, file, maxHops)
		var got []string
		for _, h := range hops {
			user := ""
			if h.user == "ann" {
				user = "ann@"
			}
			got = append(got, fmt.Sprintf("%s%s:%d", user, h.host, h.config.Port))
		}
		if err != nil {
			got = []string{"error: " + err.Error()}
		}
		if s := strings.Join(got, " "); !strings.HasPrefix(s, want) || want == "" && s != "" {
			t.Errorf("%s: got %q, want %q", name, s, want)
		}
	}
}
