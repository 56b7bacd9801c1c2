//go:build linux || darwin

package sshd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The options of a command line that sshd -T gets, of an argument list and of a title, or why they cannot be told.
func TestParseOptions(t *testing.T) {
	for _, test := range []struct {
		cmdline string // as /proc has it, with | for a zero byte
		want    string // options, with | between
		err     string
	}{
		{"/usr/sbin/sshd|-D|", "", ""},
		{"/usr/sbin/sshd|-D|-o|AllowUsers=a b|-p|2222|", "-o|AllowUsers=a b|-p|2222", ""},
		{"/usr/sbin/sshd|-Dep22|-oForceCommand=ls -d|-4|", "-p|22|-o|ForceCommand=ls -d", ""},
		{"/usr/sbin/sshd|-o|ForceCommand|", "", "has no value"},
		{"/usr/sbin/sshd|-D|-f|sshd_config|", "", "does not begin with /"},
		{"/usr/sbin/sshd|-i|", "", "no option of an sshd that listens"},
		{"/usr/sbin/sshd|-z|", "", "no option of"},
		{"/usr/sbin/sshd|-:|", "", "no option of"},
		{"/usr/sbin/sshd|-o|", "", "has no value"},
		{"/usr/sbin/sshd|more|", "", "is no option"},
		{"sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups|||", "", ""},
		{"sshd: /usr/sbin/sshd -D -o AllowUsers=a b -f /etc/ssh/my  config [listener] 0 of 10-100 startups", "-o|AllowUsers=a b|-f|/etc/ssh/my  config", ""},
		{"sshd: /usr/sbin/sshd -E /log -o ForceCommand=echo a b [listener] 1 of 10-100 start", "-o|ForceCommand=echo a b", ""},
		{"sshd: /usr/sbin/sshd -o ForceCommand=ls -d -D [listener] 0 of 10-100 startups", "", "what follows may be part of it"},
		{"sshd: /usr/sbin/sshd -D -o AllowUs", "", "its title was cut"},
		{"sshd: root@pts/0", "no listener", ""},
		{"sshd: root [priv]", "no listener", ""},
	} {
		args, joined, ok, err := parseTitle(strings.ReplaceAll(test.cmdline, "|", "\x00"))
		got := "no listener"
		if ok && err == nil {
			var options []string
			options, err = parseOptions(args, joined)
			got = strings.Join(options, "|")
		}
		if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) || test.err == "" && (err != nil || got != test.want) {
			t.Errorf("%s: %q, %v; want %q, %s", test.cmdline, got, err, test.want, test.err)
		}
	}
}

// The options of a file that a unit or a start script reads.
func TestFileOptions(t *testing.T) {
	for content, want := range map[string]string{
		"":                                     "",
		"SSHD_OPTS=\n":                         "",
		"# x\nSSHD_OPTS=\"-o AllowUsers=a\"\n": "-o AllowUsers=a",
		"export SSHD_OPTS='-4 -p 22'\n":        "-p 22",
		"SSHD_OPTS=-4\nSSHD_OPTS=-p22":         "-p 22",
		"SSHD_OPTS=\"-o \\\"AllowUsers=a b\\\"\"": "error",
		"SSHD_OPTS=\"-o 'AllowUsers=a b'\"\n":     "error",
		"SSHD_OPTS=$MORE\n":                       "error",
		"SSHD_OPTS=-i\n":                          "error",
	} {
		file := filepath.Join(t.TempDir(), "ssh")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		options, from, err := fileOptions([]variable{{file + "x", "A"}, {file, "SSHD_OPTS"}})
		got := strings.Join(options, " ")
		if err != nil {
			got = "error"
		}
		if got != want || err == nil && (from != "") != (want != "") {
			t.Errorf("%q: %q of %q, %v; want %q", content, got, from, err, want)
		}
	}
}
