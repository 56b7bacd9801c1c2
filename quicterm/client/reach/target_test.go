package reach

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
)

func TestMatchUser(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("Match user alice\n\tHostName hers.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for login, want := range map[string]string{"alice": "hers.example", "bob": "host"} {
		target, err := findTarget(t.Context(), "host", &Options{User: login, Config: config}, 4433)
		if err != nil || target.Hostname != want || target.User != login {
			t.Errorf("for %s: got %+v, %v; want %s", login, target, err, want)
		}
	}
}

// A daemon that was reached at one port of a router is not taken for the machine at another.
func TestServerByPort(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	content := "Host a b\n\tHostName router.example\n\tUser ann\nHost b\n\tPort 2202\n"
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "ann@router.example:22", "b": "ann@router.example:2202"} {
		target, err := findTarget(t.Context(), name, &Options{Config: config}, 4433)
		if err != nil {
			t.Fatal(err)
		}
		if got := target.server(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestNamedIdentityMissing(t *testing.T) {
	opts := &Options{Identities: []string{filepath.Join(t.TempDir(), "none")}, Config: os.DevNull}
	if _, err := findTarget(t.Context(), "host", opts, 4433); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want an error", err)
	}
}

// Where no user is, nothing asks: no ssh, no key with a passphrase, no key that waits for a touch, no unknown server.
func TestUnattended(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("StrictHostKeyChecking accept-new\nBatchMode no\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	target, err := findTarget(t.Context(), "host", &Options{Config: config, Unattended: true}, 4433)
	if err != nil {
		t.Fatal(err)
	}
	if !target.Batch || target.Unknown != sshconfig.Refuse {
		t.Errorf("BatchMode is %v, and the policy for unknown servers %v", target.Batch, target.Unknown)
	}
	args := strings.Join(target.sshArgs, " ")
	for _, want := range []string{"-o BatchMode=yes -o StrictHostKeyChecking=yes", "AcceptedAlgorithms=ssh-ed25519", "-- host"} {
		if !strings.Contains(args, want) {
			t.Errorf("ssh gets %s, without %s", args, want)
		}
	}
	if strings.Contains(args, "sk-") || slices.ContainsFunc(target.UserKeyAlgorithms, needsTouch) {
		t.Errorf("keys that need a touch are offered: %s", args)
	}
}

// A host that a web page or a script brings along does not control the terminal.
func TestHostOfControlCharacters(t *testing.T) {
	for _, host := range []string{"", "-v", "a b", "a\tb", "a/b", "ho\x1b[2Jst", "a\u009bb", "a\xffb", "a\u202eb",
		"$(id)", "`id`", "a;b", "a|b", "a'b", `a"b`, `a\b`, "a&b", "a>b", "a:22", "192.0.2.1:4433"} {
		if _, _, err := ParseTarget("ann@"+host, new(Options)); err == nil {
			t.Errorf("%q is taken for a host", host)
		}
	}
	for _, user := range []string{"-oProxyCommand=x", "$(id)", "`id`", "a;b", "a'b", "a\nb"} {
		if _, _, err := ParseTarget(user+"@host", new(Options)); err == nil {
			t.Errorf("%q is taken for an account", user)
		}
	}
	for _, arg := range []string{`DOMAIN\ann@host`, "ann@fe80::1%eth0", "ann@example.org@host", "ann@[::1]", "first.last+x@h_1"} {
		if _, _, err := ParseTarget(arg, new(Options)); err != nil {
			t.Error(err)
		}
	}
}

// Keys that are named come first, those of ssh's configuration follow, and default ones are
// left out, as by ssh.
func TestNamedIdentities(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	named, configured := write("named", ""), write("configured", "")
	empty := write("empty", "")
	config := write("config", "IdentityFile "+configured+"\nIdentitiesOnly yes\n")
	for file, want := range map[string][]string{empty: {named}, config: {named, configured}} {
		opts := &Options{Identities: []string{named}, Config: file}
		target, err := findTarget(t.Context(), "host", opts, 4433)
		if err != nil || !slices.Equal(target.Identities, want) || target.IdentitiesOnly != (file == config) {
			t.Fatalf("%s: %+v, %v; want %v", filepath.Base(file), target, err, want)
		}
	}
}
