package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// fill replaces {a}, {b}, {ecdsa} and {rsa} by keys, and {#name} by a hashed name.
func fill(s string) string {
	for _, host := range []string{"[h]:4433", "h", "other"} {
		s = strings.ReplaceAll(s, "{#"+host+"}", knownhosts.HashHostname(host))
	}
	return strings.NewReplacer(
		"{a}", text(public(edKey(1))),
		"{b}", text(public(edKey(2))),
		"{rsa}", text(public(rsaKey())),
		"{ecdsa}", text(public(newKey(ssh.KeyAlgoECDSA256))),
	).Replace(s)
}

// verdict returns the result of a check, with the lines of a changed key as
// number of the file:number of the line.
func verdict(err error, files []string) string {
	var unknown *UnknownHostError
	var changed *ChangedHostError
	var revoked *RevokedHostError
	switch {
	case err == nil:
		return "known"
	case errors.As(err, &unknown):
		return "unknown " + unknown.Host
	case errors.As(err, &revoked):
		return "revoked " + revoked.Host
	case errors.As(err, &changed):
		result := "changed " + changed.Host
		if changed.OfSSH {
			result = "of ssh " + changed.Host
		}
		for _, known := range changed.Known {
			where := known.Where
			for i, file := range files {
				where = strings.ReplaceAll(where, file, fmt.Sprint(i))
			}
			result += " " + where
		}
		return result
	}
	return err.Error()
}

// The result for a server with the key {a}, by default h at 4433, by the content of
// known_hosts files.
func TestKnownHosts(t *testing.T) {
	for _, test := range []struct {
		name  string
		files []string
		host  string
		port  uint16
		want  string
	}{
		{name: "nothing", files: []string{""}, want: "unknown [h]:4433"},
		{name: "no file", want: "unknown [h]:4433"},
		{name: "at the port", files: []string{"[h]:4433 {a}"}, want: "known"},
		{name: "another at the port", files: []string{"[h]:4433 {b}"}, want: "changed [h]:4433 0:1"},
		{name: "another type at the port", files: []string{"[h]:4433 {rsa}"}, want: "changed [h]:4433 0:1"},
		{name: "at another port", files: []string{"[h]:2222 {a}"}, want: "unknown [h]:4433"},
		{name: "port without brackets", files: []string{"h:4433 {b}"}, want: "unknown [h]:4433"},
		{name: "one of two at the port", files: []string{"[h]:4433 {b}\n[h]:4433 {a}"}, want: "known"},
		{name: "none of two at the port", files: []string{"[h]:4433 {b}\n\n[h]:4433 {rsa}"}, want: "changed [h]:4433 0:1 0:3"},
		{name: "by ssh", files: []string{"h {a}"}, want: "known"},
		{name: "another by ssh", files: []string{"h {b}"}, want: "of ssh [h]:4433 0:1"},
		{name: "the port decides", files: []string{"h {a}\n[h]:4433 {b}"}, want: "changed [h]:4433 0:2"},
		{name: "the port of ssh", files: []string{"h {b}"}, port: 22, want: "changed h 0:1"},
		{name: "IPv6 at the port", files: []string{"[::1]:4433 {a}"}, host: "::1", want: "known"},
		{name: "IPv6 by ssh", files: []string{"::1 {a}"}, host: "::1", want: "known"},
		{name: "another at IPv6", files: []string{"[::1]:4433 {b}"}, host: "::1", want: "changed [::1]:4433 0:1"},

		{name: "among names", files: []string{"x,[h]:4433,y {a}"}, want: "known"},
		{name: "star", files: []string{"* {a}"}, want: "known"},
		{name: "another by a star", files: []string{"* {b}"}, want: "changed [h]:4433 0:1"},
		{name: "domain", files: []string{"*.lan {a}"}, host: "h.lan", want: "known"},
		{name: "another of a domain", files: []string{"*.lan {b}"}, host: "h.lan", want: "of ssh [h.lan]:4433 0:1"},
		{name: "domain at the port", files: []string{"[*.lan]:4433 {b}"}, host: "h.lan", want: "changed [h.lan]:4433 0:1"},
		{name: "question mark", files: []string{"[?]:4433 {a}\n[??]:4433 {b}"}, want: "known"},
		{name: "negated", files: []string{"*,![h]:4433,!h {a}"}, want: "unknown [h]:4433"},
		{name: "another negated", files: []string{"!x,[h]:4433 {a}"}, want: "known"},
		{name: "only negated", files: []string{"!x {b}"}, want: "unknown [h]:4433"},
		{name: "upper case asked", files: []string{"[h.lan]:4433 {a}"}, host: "H.Lan", want: "known"},
		{name: "upper case listed", files: []string{"[H.LAN]:4433 {b}"}, host: "h.lan", want: "changed [h.lan]:4433 0:1"},

		{name: "hashed at the port", files: []string{"{#[h]:4433} {a}"}, want: "known"},
		{name: "another hashed at the port", files: []string{"{#other} {a}\n{#[h]:4433} {b}"}, want: "changed [h]:4433 0:2"},
		{name: "hashed by ssh", files: []string{"{#h} {a}"}, want: "known"},
		{name: "another hashed by ssh", files: []string{"{#h} {b}"}, want: "of ssh [h]:4433 0:1"},
		{name: "hashed of another", files: []string{"{#other} {a}"}, want: "unknown [h]:4433"},

		{name: "revoked", files: []string{"@revoked * {a}"}, want: "revoked [h]:4433"},
		{name: "revoked above", files: []string{"@revoked * {a}\n[h]:4433 {a}"}, want: "revoked [h]:4433"},
		{name: "revoked below", files: []string{"[h]:4433 {a}", "@revoked h {a}"}, want: "revoked [h]:4433"},
		{name: "revoked elsewhere", files: []string{"[h]:4433 {a}\n@revoked other {a}"}, want: "revoked [h]:4433"},
		{name: "another revoked", files: []string{"@revoked * {b}\n[h]:4433 {a}"}, want: "known"},
		{name: "changed to a revoked one", files: []string{"@revoked * {a}\n[h]:4433 {b}"}, want: "revoked [h]:4433"},

		{name: "authority of the host", files: []string{"@cert-authority * {b}"}, want: "unknown [h]:4433"},
		{name: "authority's own key", files: []string{"@cert-authority * {a}"}, want: "unknown [h]:4433"},
		{name: "authority at the port", files: []string{"@cert-authority [h]:4433 {b}\nh {a}"}, want: "known"},
		{name: "authority beside a key", files: []string{"@cert-authority * {b}\n[h]:4433 {a}"}, want: "known"},

		{name: "missing file", files: []string{"missing", "[h]:4433 {a}"}, want: "known"},
		{name: "in the second file", files: []string{"other {b}", "[h]:4433 {a}"}, want: "known"},
		{name: "another in the first file", files: []string{"[h]:4433 {b}", "[h]:4433 {a}"}, want: "known"},
		{name: "another in both files", files: []string{"[h]:4433 {b}", "\n[h]:4433 {b}"}, want: "changed [h]:4433 0:1 1:2"},

		{name: "comments and blanks", files: []string{"# [h]:4433 {b}\n\n \t\n  [h]:4433\t {a}  me and others "}, want: "known"},
		{name: "CRLF", files: []string{"\r\n# x\r\n[h]:4433 {a}\r\n"}, want: "known"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var files []string
			for i, content := range test.files {
				file := filepath.Join(t.TempDir(), "missing")
				if content != "missing" {
					file = write(t, fmt.Sprint("known_hosts", i), fill(content))
				}
				files = append(files, file)
			}
			if test.host == "" {
				test.host = "h"
			}
			if test.port == 0 {
				test.port = 4433
			}
			k, err := LoadKnownHosts(test.host, test.port, files)
			if err != nil {
				t.Fatal(err)
			}
			if got := verdict(k.Check(public(edKey(1))), files); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A line that cannot be parsed affects neither other lines nor their numbers.
func TestKnownHostsMalformed(t *testing.T) {
	for name, line := range map[string]string{
		"a word":             "h",
		"no key":             "h ssh-ed25519",
		"type of another":    strings.Replace(fill("[h]:4433 {b}"), "ssh-ed25519", "ssh-rsa", 1),
		"unknown type":       "[h]:4433 ssh-new AAAAB3NzaC1uZXc=",
		"no base64":          "[h]:4433 ssh-ed25519 A@A",
		"cut key":            fill("[h]:4433 {b}")[:60],
		"unknown marker":     fill("@new [h]:4433 {b}"),
		"two markers":        fill("@cert-authority @revoked {b}"),
		"marker alone":       "@revoked",
		"marker without key": "@revoked * ssh-ed25519",
		"hash cut":           fill("|1|abc {b}"),
		"hash of no base64":  fill("|1|a@|b@ {b}"),
		"unknown hash":       fill("|2|AAAA|AAAA {b}"),
		"empty hash":         fill("|1|| {b}"),
		"hash among names":   fill("x,{#[h]:4433} {b}"),
		"open bracket":       fill("[h {b}"),
		"bare negation":      fill("! {b}"),
		"bare comma":         fill(", {b}"),
		"form feed":          "\f",
		"very long":          fill("x,") + strings.Repeat("y,", 1<<17) + fill("z {b}"),
		"binary":             "\x00\xff\xfe \x00 \x00",
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, "known_hosts", line+fill("\n[h]:4433 {a}\n")+line)
			k, err := LoadKnownHosts("h", 4433, []string{file})
			if err != nil {
				t.Fatal(err)
			}
			if got := verdict(k.Check(public(edKey(1))), nil); got != "known" {
				t.Errorf("the key below: got %q, want known", got)
			}
			if got, want := verdict(k.Check(public(edKey(2))), []string{file}), "changed [h]:4433 0:2"; got != want {
				t.Errorf("another key: got %q, want %q", got, want)
			}
		})
	}
}

func TestKnownHostsUnreadable(t *testing.T) {
	dir := t.TempDir()
	if _, err := LoadKnownHosts("h", 4433, []string{dir}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory: got %v, want an error that names it", err)
	}
}

// The types of known keys come first, and each type once.
func TestKeyTypes(t *testing.T) {
	const ed, ec, rsa = ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoRSA
	rest := []string{ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521}
	for _, test := range []struct {
		name, content string
		want          []string
	}{
		{"nothing known", "", keyTypes},
		{"at the port", "[h]:4433 {rsa}", append([]string{rsa, ed, ec}, rest...)},
		{"by ssh", "h {ecdsa}", append(append([]string{ec, ed}, rest...), rsa)},
		{"the port before ssh", "h {ecdsa}\n[h]:4433 {rsa}", append([]string{rsa, ec, ed}, rest...)},
		{"twice", "h {rsa}\n[h]:4433 {rsa}\n[h]:4433 {rsa}", append([]string{rsa, ed, ec}, rest...)},
		{"of others", "other {rsa}\n@cert-authority other {rsa}\n@revoked * {ecdsa}", keyTypes},
		{"of an authority", "@cert-authority h {rsa}\nh {ecdsa}", slices.Concat(
			[]string{ed + certified, ec + certified, rest[0] + certified, rest[1] + certified, rsa + certified},
			[]string{ec, ed}, rest, []string{rsa})},
	} {
		k, err := LoadKnownHosts("h", 4433, []string{write(t, "known_hosts", fill(test.content))})
		if err != nil {
			t.Fatal(err)
		}
		if got := k.KeyTypes(); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// A user who accepts an unknown key is not asked again.
func TestAddKnownHost(t *testing.T) {
	for _, test := range []struct{ name, host, before, after string }{
		{"new file", "h", "", "[h]:4433 {a}\n"},
		{"behind a line", "h", "other {b}\n", "other {b}\n[h]:4433 {a}\n"},
		{"behind a line without an end", "h", "other {b}", "other {b}\n[h]:4433 {a}\n"},
		{"IPv6", "fe80::1%eth0", "", "[fe80::1%eth0]:4433 {a}\n"},
		{"upper case", "Host.Lan", "", "[host.lan]:4433 {a}\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "new", "known_hosts")
			if test.before != "" {
				file = write(t, "known_hosts", fill(test.before))
			}
			load := func() *KnownHosts {
				k, err := LoadKnownHosts(test.host, 4433, []string{file})
				if err != nil {
					t.Fatal(err)
				}
				return k
			}
			var unknown *UnknownHostError
			if err := load().Check(public(edKey(1))); !errors.As(err, &unknown) {
				t.Fatalf("before: got %v, want an unknown host", err)
			}
			if err := AddKnownHost(file, unknown.Host, unknown.Key, false); err != nil {
				t.Fatal(err)
			}
			if err := load().Check(public(edKey(1))); err != nil {
				t.Errorf("after: %v", err)
			}
			if b, err := os.ReadFile(file); string(b) != fill(test.after) {
				t.Errorf("file has %q, %v; want %q", b, err, fill(test.after))
			}
			if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
				t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
			}
			if test.before == "" {
				if info, err := os.Stat(filepath.Dir(file)); err != nil || info.Mode() != fs.ModeDir|0o700 {
					t.Errorf("directory has mode %v, %v; want 0700", info.Mode(), err)
				}
			}
		})
	}
}

// With HashKnownHosts, the file does not show which host it is, and ssh-keygen finds it.
func TestAddHashedHost(t *testing.T) {
	file := write(t, "known_hosts", "")
	if err := AddKnownHost(file, "[h]:4433", public(edKey(1)), true); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(b), "|1|") || strings.Contains(string(b), "h]") {
		t.Errorf("file has %q, %v", b, err)
	}
	k, err := LoadKnownHosts("h", 4433, []string{file})
	if err != nil || k.Check(public(edKey(1))) != nil {
		t.Errorf("the key is not known: %v", err)
	}
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command("ssh-keygen", "-F", "[h]:4433", "-f", file).CombinedOutput(); err != nil {
		t.Errorf("ssh-keygen -F: %v: %s", err, out)
	}
}

// No content of a file makes a key known that is not in it, removes a type from KeyTypes,
// or hides that a key is revoked.
func FuzzKnownHosts(f *testing.F) {
	key := public(edKey(1))
	f.Fuzz(func(t *testing.T, content []byte) {
		k := &KnownHosts{host: "[h]:4433", sshHost: "h"}
		k.Add("file", content)
		blob := strings.Fields(text(key))[1]
		if k.Check(key) == nil && !strings.Contains(strings.ReplaceAll(string(content), "\r", ""), blob) {
			t.Error("a key is known that is not in the file")
		}
		types := slices.DeleteFunc(k.KeyTypes(), func(t string) bool { return strings.HasSuffix(t, certified) })
		slices.Sort(types)
		if all := slices.Sorted(slices.Values(keyTypes)); !slices.Equal(types, all) {
			t.Errorf("asks for %v, want each of %v once", types, all)
		}
		k.Add("file", []byte("@revoked * "+text(key)))
		wantAs[*RevokedHostError](t, "with a line that revokes the key", k.Check(key))
	})
}
