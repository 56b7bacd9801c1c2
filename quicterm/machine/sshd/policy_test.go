//go:build linux || darwin

package sshd

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// base is the part of what sshd -T prints that must be there.
const base = `port 22
usepam yes
usedns no
permitrootlogin prohibit-password
pubkeyauthentication yes
authorizedkeysfile .ssh/authorized_keys
`

func parse(t *testing.T, lines ...string) *Policy {
	t.Helper()
	p, err := Parse([]byte(base + strings.Join(lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// login is one of an account with two groups.
func login(user string, uid uint32, client string) *Login {
	return &Login{
		User: user, UID: uid, Shell: "/bin/sh", Client: netip.MustParseAddr(client),
		Locked: func() (bool, error) {
			if user == "lost" {
				return false, errors.New("no answer")
			}
			return user == "locked", nil
		},
		Groups: func(context.Context) ([]string, error) {
			if user == "lost" {
				return nil, errors.New("no answer")
			}
			return []string{"staff", "domain users"}, nil
		},
	}
}

// Whom sshd's settings let in. The cases in package e2e are compared with a real sshd; these
// are the ones that it is not needed for.
func TestAdmit(t *testing.T) {
	for _, test := range []struct {
		lines string
		login *Login
		want  string // of the refusal; empty if the account gets in
	}{
		{"", login("jo", 1, "10.0.0.1"), ""},
		{"refuseconnection yes", login("jo", 1, "10.0.0.1"), "RefuseConnection"},
		{"maxsessions 0", login("jo", 1, "10.0.0.1"), "MaxSessions 0"},
		{"maxsessions 10", login("jo", 1, "10.0.0.1"), ""},
		{"chrootdirectory /srv", login("jo", 1, "10.0.0.1"), "ChrootDirectory, which is not supported"},
		{"forcecommand internal-sftp -R", login("jo", 1, "10.0.0.1"), ""},
		{"forcecommand echo \xff", login("jo", 1, "10.0.0.1"), "ForceCommand that is not UTF-8"},
		{"usepam no", login("locked", 1, "10.0.0.1"), "locked password"},
		{"usepam no", login("lost", 1, "10.0.0.1"), "no answer"},
		{"usepam yes", login("locked", 1, "10.0.0.1"), ""},
		{"", login("root", 0, "10.0.0.1"), ""},
		{"permitrootlogin without-password", login("root", 0, "10.0.0.1"), ""},
		{"permitrootlogin forced-commands-only", login("root", 0, "10.0.0.1"), ""},
		{"permitrootlogin no", login("toor", 0, "10.0.0.1"), "PermitRootLogin no"},
		{"permitrootlogin perhaps", login("root", 0, "10.0.0.1"), "PermitRootLogin perhaps"},
		{"denyusers jo", login("jo", 1, "10.0.0.1"), "DenyUsers"},
		{"denyusers jo\nallowusers jo", login("jo", 1, "10.0.0.1"), "DenyUsers"},
		{"denyusers j?@10.0.0.0/8", login("jo", 1, "10.0.0.1"), "DenyUsers"},
		{"denyusers jo@10.0.0.0/8", login("jo", 1, "11.0.0.1"), ""},
		{"denyusers jo@10.0.0.1/8", login("jo", 1, "11.0.0.1"), "not a network"},
		{"allowusers other\nallowusers jo@10.0.0.*,!10.0.0.7", login("jo", 1, "10.0.0.1"), ""},
		{"allowusers other\nallowusers jo@10.0.0.*,!10.0.0.7", login("jo", 1, "10.0.0.7"), "AllowUsers"},
		{"allowusers jo@fd00::/8", login("jo", 1, "fd00::1"), ""},
		{"allowusers jo@fe80::/10", login("jo", 1, "fe80::1%lo"), ""},
		{"allowusers jo@10.0.0.0/8", login("jo", 1, "::ffff:10.0.0.1"), ""},
		{"allowusers jo@host.example", login("jo", 1, "10.0.0.1"), ""},
		{"allowusers jo@*.Example,!bad.example", login("jo", 1, "10.0.0.1"), ""},
		{"denyusers jo@*.example,!host.example", login("jo", 1, "10.0.0.1"), ""},
		{"allowgroups staff", login("jo", 1, "10.0.0.1"), ""},
		{"allowgroups domain users", login("jo", 1, "10.0.0.1"), ""},
		{"allowgroups users", login("jo", 1, "10.0.0.1"), "AllowGroups"},
		{"denygroups dom*\nallowgroups staff", login("jo", 1, "10.0.0.1"), "DenyGroups"},
		{"denygroups dom*\nallowusers jo", login("jo", 1, "10.0.0.1"), "DenyGroups"},
		{"allowgroups staff", login("lost", 1, "10.0.0.1"), "no answer"},
		{"denygroups staff", login("lost", 1, "10.0.0.1"), "no answer"},
	} {
		err := parse(t, test.lines).Admit(t.Context(), test.login, "host.example")
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%q, %s@%v: %v, want %q", test.lines, test.login.User, test.login.Client, err, test.want)
		}
	}
}

func TestShell(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shell")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for shell, want := range map[string]string{"/bin/sh": "", file: "cannot be executed", filepath.Dir(file): "cannot be executed", file + "x": "does not exist"} {
		l := login("jo", 1, "10.0.0.1")
		l.Shell = shell
		if err := parse(t).Admit(t.Context(), l, ""); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", shell, err, want)
		}
	}
}

func newKey(t *testing.T, public any) ssh.PublicKey {
	t.Helper()
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ed25519Key(t *testing.T) ssh.PublicKey {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newKey(t, public)
}

// Which keys get in, and with which command.
func TestAcceptKey(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	ed, short := ed25519Key(t), newKey(t, &private.PublicKey)
	for _, test := range []struct {
		lines string
		key   ssh.PublicKey
		want  string
	}{
		{"", ed, ""},
		{"authenticationmethods any", ed, ""},
		{"authenticationmethods publickey,password publickey", ed, ""},
		{"authenticationmethods publickey,keyboard-interactive:pam password", ed, "AuthenticationMethods publickey,keyboard-interactive:pam password, which is not supported"},
		{"pubkeyauthentication no", ed, "PubkeyAuthentication no"},
		{"pubkeyacceptedalgorithms rsa-sha2-*,!ssh-ed25519,*", ed, "PubkeyAcceptedAlgorithms"},
		{"pubkeyacceptedalgorithms rsa-sha2-512", ed, "PubkeyAcceptedAlgorithms"},
		{"pubkeyacceptedalgorithms rsa-sha2-512", short, ""},
		{"pubkeyacceptedkeytypes ssh-rsa", short, "PubkeyAcceptedAlgorithms"},
		{"requiredrsasize 1024", short, ""},
		{"requiredrsasize 2048", short, "RequiredRSASize 2048"},
		{"requiredrsasize 2048", ed, ""},
		{"revokedkeys none", ed, ""},
		{"revokedkeys /none", ed, "RevokedKeys cannot be read"},
	} {
		p := parse(t, test.lines)
		err := p.AcceptKey(test.key)
		if unread := strings.HasSuffix(test.lines, "/none"); errors.Is(err, ErrRefused) != (test.want != "" && !unread) {
			t.Errorf("%q: %v", test.lines, err)
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q, %s: %v, want %q", test.lines, test.key.Type(), err, test.want)
		}
	}
	forced := parse(t, "permitrootlogin forced-commands-only")
	if forced.AcceptCommand(0, "") == nil || forced.AcceptCommand(0, "true") != nil || forced.AcceptCommand(1, "") != nil {
		t.Error("forced-commands-only does not depend on root's command alone")
	}
}

func TestParse(t *testing.T) {
	p := parse(t, "authorizedkeysfile /etc/keys/%u .ssh/authorized_keys none", "forcecommand sh -c 'a  b'", "permittty no",
		"pubkeyauthoptions touch-required verify-required", "authorizedkeyscommand /bin/keys", "unknown thing", "port 2222")
	if len(p.Sources.Files) != 2 || p.Sources.Files[0] != "/etc/keys/%u" || p.command != "sh -c 'a  b'" ||
		!p.noTerminal || len(p.keyOptions) != 2 || p.Sources.Program != "/bin/keys" || p.port != 22 {
		t.Errorf("got %+v", *p)
	}
	p = parse(t, "DenyUsers jo", "Subsystem sftp internal-sftp", "PermitTTY no") // as of OpenSSH 10.5
	if !slices.Equal(p.denyUsers, []string{"jo"}) || p.sftp != "internal-sftp" || !p.noTerminal {
		t.Errorf("got %+v", *p)
	}
	if p := parse(t, "authorizedkeysfile none", "forcecommand none", "authorizedkeyscommand none"); len(p.Sources.Files) > 0 || p.command != "" || p.Sources.Program != "" {
		t.Errorf("got %+v", *p)
	}
	for line := range strings.Lines(base) {
		name, _, _ := strings.Cut(line, " ")
		_, err := Parse([]byte(strings.Replace(base, line, "", 1)))
		if optional := name == "usepam" || name == "usedns"; (err == nil) != optional {
			t.Errorf("without %s: %v", name, err)
		}
	}
	for _, bad := range []string{"port x", "port 65536", "usepam maybe", "pubkeyauthentication", "permittty YES", "requiredrsasize 2k"} {
		if p, err := Parse([]byte(bad + "\n" + base)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, *p)
		}
	}
}

func TestMatch(t *testing.T) {
	for patterns, want := range map[string]int{"a,b": 1, "b,c": 0, "*,!a": -1, "!a,*": -1, "!b,*": 1, "!b": 0} {
		if got := auth.MatchList(patterns, "a"); got != want {
			t.Errorf("%q: %d, want %d", patterns, got, want)
		}
	}
	for _, bad := range []string{"", "10.0.0.0/8,", "10.0.0.1/8", "10.0.0.0/33", "!", "::1/64"} {
		if _, err := matchHost(bad, "host", netip.MustParseAddr("11.0.0.1")); err == nil {
			t.Errorf("%q: want an error", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(base))
	f.Add([]byte(base + "forcecommand x\nallowusers a@!b,c\nmaxsessions 0\nrevokedkeys /x\nauthenticationmethods\n"))
	f.Fuzz(func(t *testing.T, output []byte) {
		p, err := Parse(output)
		if err != nil {
			return
		}
		p.Admit(t.Context(), login("jo", 0, "10.0.0.1"), "host.example")
	})
}

// ownNothing has no own settings.
var ownNothing = NewOwn()

// The daemon's own settings, without an sshd.
func TestOwn(t *testing.T) {
	own := NewOwn()
	for _, setting := range []Setting{
		{"allowusers", "jo"}, {"allowusers", "al@10.0.0.0/8"}, {"allowgroups", "domain users"},
		{"authorizedkeysfile", "a"}, {"authorizedkeysfile", "b c"},
	} {
		if err := own.Add(setting); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		login *Login
		want  string
	}{
		{login("jo", 1, "10.0.0.1"), ""},
		{login("jo", 0, "10.0.0.1"), ""},
		{login("al", 1, "11.0.0.1"), "refused by the setting allow_users"},
	} {
		got := ""
		if err := own.Admit(t.Context(), test.login, test.login.Client.String()); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s@%v: %q, want %q", test.login.User, test.login.Client, got, test.want)
		}
	}
	if !slices.Equal(own.Sources.Files, []string{"a", "b c"}) {
		t.Errorf("files %q", own.Sources.Files)
	}
	for setting, want := range map[Setting]string{
		{"allowusers", "jo@!*,10.1.0.0/8"}:     `allow_users "jo@!*,10.1.0.0/8": "10.1.0.0/8" is not a network`,
		{"allowusers", ""}:                     `allow_users "": an empty pattern`,
		{"allowusers", "jo al"}:                `allow_users "jo al": no account can match it`,
		{"allowusers", "jo@10.0.0.0/8x"}:       `allow_users "jo@10.0.0.0/8x": "10.0.0.0/8x" is not a network`,
		{"allowusers", "jo@300.0.0.0/8"}:       `allow_users "jo@300.0.0.0/8": "300.0.0.0/8" is not a network`,
		{"allowusers", "jo@10.0.0.0/33"}:       `allow_users "jo@10.0.0.0/33": "10.0.0.0/33" is not a network`,
		{"allowgroups", ""}:                    `allow_groups "": an empty pattern`,
		{"allowgroups", "domain users"}:        "",
		{"allowusers", "jo@"}:                  `allow_users "jo@": an empty pattern`,
		{"authorizedkeysfile", "/etc/keys/%C"}: `authorized_keys_files "/etc/keys/%C": %C is not`,
		{"authorizedkeysfile", "%h/names%"}:    `authorized_keys_files "%h/names%": % at the end`,
		{"allowusers", "*@host,10.*,::/0"}:     "",
	} {
		if err := NewOwn().Add(setting); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v, want %s", setting, err, want)
		}
	}
}

// A pattern for which sshd refuses accounts is a mistake; one that it takes for a name is none.
func TestCheckPatterns(t *testing.T) {
	for line, wrong := range map[string]bool{
		"allowusers jo@10.0.0.1/8": true, "denyusers jo@10.0.0.0/33": true, "allowusers jo@10.0.0.0/8,!10.1.0.0/16": false,
		"denyusers jo@host": false, "allowusers jo": false, "allowgroups a@10.0.0.1/8": false,
	} {
		if err := parse(t, line).CheckPatterns(); (err != nil) != wrong {
			t.Errorf("%s: %v", line, err)
		}
	}
}
