package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/client/reach"
)

// The block for a host has what ssh's configuration has for it, and nothing that holds for all
// hosts.
func TestHostBlock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ssh config")
	config := `
Host one
	HostName one.example
	User anna
Host two
	HostName 2001:db8::2
	Port 2222
	IdentityFile "/keys/of %% two"
	CertificateFile /keys/cert
	IdentitiesOnly yes
	UserKnownHostsFile /known
	StrictHostKeyChecking yes
Host three
	HostName one.example
	Port 2222
	HostKeyAlias one.example
Host *
	User joe
	IdentityFile /key
	ServerAliveInterval 30
`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	proxy := shellWord(exe) + " ssh-proxy "
	for _, test := range []struct {
		host string
		opts options
		want string
	}{
		{host: "one", want: `Host one.qt
    HostName one.example
    HostKeyAlias one.example
    User anna
    ServerAliveInterval 0
    ProxyCommand ` + proxy + `-F '` + file + `' one.qt
`},
		{host: "bob@two", opts: options{Options: reach.Options{Port: 4000}}, want: `Host two.qt
    HostName 2001:db8::2
    HostKeyAlias [2001:db8::2]:2222
    User bob
    IdentityFile "/keys/of %% two"
    IdentityFile /key
    CertificateFile /keys/cert
    IdentitiesOnly yes
    UserKnownHostsFile /known
    StrictHostKeyChecking yes
    ServerAliveInterval 0
    ProxyCommand ` + proxy + `-p 4000 -F '` + file + `' -l bob two.qt
`},
		{host: "three", want: `Host three.qt
    HostName one.example
    HostKeyAlias one.example
    User joe
    ServerAliveInterval 0
    ProxyCommand ` + proxy + `-F '` + file + `' three.qt
`},
	} {
		test.opts.Config = file
		b, err := hostBlock(t.Context(), test.host, &test.opts)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != test.want {
			t.Errorf("got\n%swant\n%s", b, test.want)
		}
	}
	if _, err := hostBlock(t.Context(), "-oProxyCommand=x", &options{}); err == nil || !strings.Contains(err.Error(), "is not a host") {
		t.Errorf("an option in place of a host: %v", err)
	}
}

// A word for the user's shell is one word, whatever it has in it.
func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"/usr/bin/qt": "/usr/bin/qt", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "": "''",
	} {
		if got := shellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
