//go:build linux || darwin

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// Whatever is at the other end of ssh in place of qtd, or between, qt ends with one line that says
// what is wrong, and shows nothing that controls the terminal.
func TestBadBootstrap(t *testing.T) {
	t.Parallel()
	elf := func(t *testing.T) string { // of another architecture
		b, err := os.ReadFile(bin + "/qtd")
		if err != nil {
			t.Fatal(err)
		}
		b[18], b[19] = 0xee, 0xee // e_machine
		return string(b[:1<<20])
	}
	for _, c := range []struct {
		name    string
		forced  string // command of the key
		ssh     string // a line of ssh's configuration
		prepare func(t *testing.T, s *sshHost)
		want    string // a pattern of the line
	}{
		{name: "no qtd", prepare: func(t *testing.T, s *sshHost) { os.Remove(s.Path("remote/qtd")) },
			want: `qtd is not installed on target: qt install target puts it there`},
		{name: "qtd that may not be executed", prepare: func(t *testing.T, s *sshHost) {
			os.Remove(s.Path("remote/qtd"))
			s.Write("home/.local/bin/qtd", "text")
		}, want: `qtd on target cannot be run: .*[Pp]ermission denied`},
		{name: "qtd of another architecture", prepare: func(t *testing.T, s *sshHost) {
			s.Write("remote/qtd", elf(t))
			os.Chmod(s.Path("remote/qtd"), 0o755)
		}, want: `qtd on target cannot be run: .*`},
		{name: "old qtd", prepare: func(t *testing.T, s *sshHost) {
			s.Write("remote/qtd", "#!/bin/sh\necho 'qtd: unknown flag: --stdio' >&2; exit 1\n")
		}, want: `qtd on target has another version than this qt: .*qt install target`},
		{name: "qtd of another protocol", forced: `echo 'quicterm-grant {"protocol":"quicterm/9","software":"qtd 9\u001b[2J"}'; cat`,
			want: `qtd 9\?\[2J on target has another version than this qt: update qt here, or qtd there with qt install target`},
		{name: "no directory for sockets", prepare: func(t *testing.T, s *sshHost) {
			s.Write("qtd.toml", "runtime_dir = \"/proc/none\"\n")
		}, want: `qtd on target: directory for sockets: .*`},
		{name: "grants off", prepare: func(t *testing.T, s *sshHost) { s.Write("qtd.toml", "grants = \"off\"\n") },
			want: `qtd on target: the setting grants is off: .*`},
		{name: "another program", forced: "echo this is for git alone", want: `target runs another program than qtd, which says: this is for git alone`},
		{name: "hostile text", forced: `printf '\033]0;evil\007\033[31m\302\233;\n' >&2; printf '\033[2Jmotd\n\033P\n'; exit 3`,
			want: `target runs another program than qtd, which says: \?\]0;evil\?\?\[31m\?;`},
		{name: "hostile grant", forced: `printf 'quicterm-grant {"address":"\033[2J"}\n'; cat`, want: `grant.*`},
		{name: "hostile platform", forced: `printf 'quicterm-missing \033[2J\n'`, want: `qtd is not installed on target: .*`},
		{name: "a program that says nothing", forced: "exit 7", want: `target runs another program than qtd, which says nothing and ends with status 7`},
		{name: "a program that repeats", forced: "cat", want: `target runs another program than qtd, which repeats what it is sent`},
		{name: "noise without end", forced: "yes noise", want: `target: the login prints without end`},
		{name: "a line without end", forced: "cat /dev/zero", want: `target: the login prints without end`},
		{name: "a grant that is cut off", forced: `printf 'quicterm-grant {"addr'`, want: `grant.*`},
		{name: "a dead jump host", ssh: "ProxyCommand sh -c 'sleep 0.1; exit 1'", want: `ssh to target: .*[Cc]onnection closed.*`},
		{name: "another key", prepare: func(t *testing.T, s *sshHost) { s.Write("authorized_keys", "") },
			want: `ssh to target: .*Permission denied \(publickey\)\.`},
		{name: "an unknown host", prepare: func(t *testing.T, s *sshHost) { s.Write("known_hosts_ssh", "") },
			want: `ssh to target: .*Host key verification failed\.`},
		{name: "a bad configuration", ssh: "Nonsense yes", want: `.*[Nn]onsense.*`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSSHHost(t)
			if c.forced != "" {
				key := string(ssh.MarshalAuthorizedKey(s.Key))
				s.Write("authorized_keys", `command="`+strings.ReplaceAll(c.forced, `"`, `\"`)+`" `+key)
			}
			s.Serve()
			if c.ssh != "" {
				s.SSH = append(s.SSH, c.ssh)
			}
			if c.prepare != nil {
				c.prepare(t, s)
			}
			cmd := s.QT("connect", []string{"--bootstrap", "ssh"}, "echo in")
			cmd.SysProcAttr = noTerminal
			var errs bytes.Buffer
			cmd.Stderr = &errs
			start := time.Now()
			out, err := cmd.Output()
			if took := time.Since(start); took > time.Minute { // that long it waits for a daemon that does not answer
				t.Errorf("it took %v", took)
			}
			if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 255 || len(out) > 0 {
				t.Errorf("%q, %v; want the exit status 255", out, err)
			}
			if !regexp.MustCompile(`^qt: (` + c.want + `)\n$`).Match(errs.Bytes()) {
				t.Errorf("%q, want the line %q", &errs, c.want)
			}
		})
	}
}
