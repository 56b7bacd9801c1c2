package e2e

import (
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// probe prints what a session has from whoever started it, as lines NAME=VALUE.
const probe = `
while read -r name value; do case $name in
	Name:|State:|Tgid:|Ngid:|Pid:|PPid:|NSpid:|NStgid:|NSpgid:|NSsid:|FDSize:|Vm*|Rss*|Hugetlb*|Threads:|SigQ:|*ctxt_switches:|x86*) ;;
	*) echo "status $name=$value" ;;
esac; done </proc/self/status
while read -r line; do echo "limit ${line%%  *}=${line#*  }"; done </proc/self/limits
for fd in /proc/$$/fd/*; do n=${fd##*/}; echo "descriptor $n=$(readlink $fd) $(grep flags /proc/$$/fdinfo/$n)"; done
for ns in /proc/$$/ns/*; do echo "namespace ${ns##*/}=$(readlink $ns)"; done
for file in oom_score_adj loginuid coredump_filter timerslack_ns personality autogroup cgroup attr/current; do
	echo "file $file=$(cat /proc/$$/$file 2>/dev/null | tr '\n\0' '  ')"
done
for link in cwd root exe; do echo "link $link=$(readlink /proc/$$/$link)"; done
set -- $(sed 's/.*) //' /proc/$$/stat)
echo "leads its session=$([ $4 = $$ ] && echo yes)"; echo "leads its group=$([ $3 = $$ ] && echo yes)"
echo "priority=${16} ${17} ${38} ${39}"; echo "terminal=$5"
keyctl show 2>&1 | sed 's/^ *[0-9]* *//; s/^/keyring /; s/  */ /g; s/$/=/'
env | sed 's/^/variable /' | sort
`

// changing is what two sessions never share: numbers of logins, ports, inodes.
var changing = []struct{ what, by string }{
	{`session-c?\d+\.scope`, "session-N.scope"},
	{`(variable XDG_SESSION_ID)=.*`, "$1=N"},
	{`(SSH_C\w+=127\.0\.0\.1) \d+( 127\.0\.0\.1)? \d+`, "$1 PORT$2 PORT"},
	{`/dev/pts/\d+`, "/dev/pts/N"},
	{`\nterminal=[1-9]\d*`, "\nterminal=one"},
	{`(flags:\t)0100002`, "${1}02"}, // O_LARGEFILE, which means nothing on machines of 64 bits
	{`(pipe|socket):\[\d+\]`, "$1"},
	{`/autogroup-\d+`, "/autogroup-N"},
}

// stateOf returns what a session has, by name.
func stateOf(t *testing.T, cmd *exec.Cmd) map[string]string {
	t.Helper()
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &errs)
	}
	text := strings.ReplaceAll(string(out), "\r\n", "\n")
	for _, c := range changing {
		text = regexp.MustCompile(c.what).ReplaceAllString(text, c.by)
	}
	state := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		state[name] = value
	}
	return state
}

// A starter is a way in which root's daemon and sshd are started on a machine, and how they are ended.
type starter struct {
	name, start, stop string
	sshd              int // its port
}

// begin is a script that starts both.
const begin = `#!/bin/sh
mkdir -p /run/sshd
/usr/sbin/sshd -f /etc/quicterm/sshd_config -p 2200 -o PidFile=/run/begin.pid
exec $WITH /usr/bin/qtd serve
`

const stopBoth = `pid=$(qtd status --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p')
for pid in $pid $(cat /run/begin.pid); do kill $pid; while test -d /proc/$pid; do sleep 0.01; done; done`

var starters = []starter{
	{"its unit", "systemctl start qtd sshd", "systemctl stop qtd sshd", 2222},
	{"an administrator by sudo", `sudo -n /usr/bin/begin >/dev/null 2>&1 &`, stopBoth, 2200},
	{"cron", `echo '@reboot root exec /usr/bin/begin >/dev/null 2>&1' >/etc/cron.d/begin
rm -f /run/crond.reboot; systemd-run --quiet --unit=crontest cron -f`, stopBoth, 2200},
	{"a container", `systemd-run --quiet --unit=container unshare --mount --pid --fork --mount-proc --uts sh -ec '
mount -t tmpfs tmpfs /run/systemd; mount -t tmpfs tmpfs /run/dbus; WITH="env -i" exec /usr/bin/begin'`, "systemctl stop container", 2200},
}

// asBySu are differences that have one reason: sessions of PAM are opened by the rules for su.
const asBySu = "PAM has other rules for su than for sshd"

// differences are what a session has and a login by sshd has not, or the other way round, and why.
var differences = map[string]string{
	"variable QUICTERM_BIN": "for qt ssh-config", "variable QUICTERM_SESSION": "the session's name",
	"variable TERM": "clients send it without a terminal too, as pagers and colours of tools depend on it",
	"variable PATH": "login(1) has /usr/local/games too",
	"variable MAIL": asBySu, "variable MOTD_SHOWN": asBySu,
	"variable XDG_SESSION_CLASS": asBySu, "variable XDG_SESSION_TYPE": asBySu,
}

// A session has what a login by sshd has, whoever has started the daemon. What differs is listed above, with the reason.
func TestSessionIsAsLoginOfSSHD(t *testing.T) {
	s := newSystemdHost(t, "")
	for _, program := range []string{"ssh", "sudo", "cron"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	s.Client["send_env"] = "[]"
	s.Write("begin", begin)
	s.Run("install -m 755 " + s.Path("begin") + " /usr/bin/begin")
	for _, by := range starters {
		s.Run(by.start)
		s.Await("the daemon", func() bool { return s.Command("qtd", "status").Run() == nil })
		for mode, flag := range map[string]string{"pipe": "-T", "terminal": "-tt"} {
			login := stateOf(t, s.Command("ssh", flag, "-F", "none", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o", "StrictHostKeyChecking=no",
				"-o", "UserKnownHostsFile=/dev/null", "-i", s.Path("id"), "-p", fmt.Sprint(by.sshd), "ann@127.0.0.1", probe))
			session := stateOf(t, s.inside(s.Via(installed, "connect", []string{"-l", "ann", flag[:2]}, probe)))
			both := maps.Clone(login)
			maps.Copy(both, session)
			for _, name := range slices.Sorted(maps.Keys(both)) {
				bySSH, has := login[name]
				byQt, also := session[name]
				if (bySSH != byQt || has != also) && differences[name] == "" {
					t.Errorf("%s, daemon started by %s: %s is %q (%t), and by sshd %q (%t)", mode, by.name, name, byQt, also, bySSH, has)
				}
			}
			if len(login) < 60 {
				t.Errorf("sshd's login has only %d properties", len(login))
			}
		}
		s.Run(by.stop)
	}
}
