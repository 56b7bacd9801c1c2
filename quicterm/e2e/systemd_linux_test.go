package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/machine/systemd/systemdtest"
)

// installed is where the daemon of a machine listens.
var installed = netip.MustParseAddrPort("127.0.0.1:4433")

// A systemdHost is a host on a machine with a systemd of its own, where the programs and the unit
// are installed.
type systemdHost struct {
	*rig.Host
	*systemdtest.Machine
}

// newSystemdHost boots a machine with root's daemon. Its settings are those given. The key of the
// host logs in to root, ann and bob.
func newSystemdHost(t *testing.T, settings string) *systemdHost {
	if testing.Short() {
		t.Skip("it boots a machine")
	}
	h := newHost(t)
	unit, err := os.ReadFile("../../configs/qtd.service")
	if err != nil {
		t.Fatal(err)
	}
	h.Write("qtd.service", string(unit))
	h.Write("qtd.toml", `host_key = ["/etc/quicterm/host_key"]`+"\n"+settings)
	h.Write("sshd_config", `
Port 2222
ListenAddress 127.0.0.1
HostKey /etc/quicterm/host_key
UsePAM yes
UseDNS no
PermitRootLogin yes
PasswordAuthentication no
`)
	h.Write("sshd.service", `
[Service]
Type=notify
ExecStart=/usr/sbin/sshd -D -e -f /etc/quicterm/sshd_config
KillMode=process
RuntimeDirectory=sshd
[Install]
WantedBy=multi-user.target
`)
	h.Write("logind.conf", "[Login]\nKillUserProcesses=yes\nKillExcludeUsers=\n")
	prepare := fmt.Sprintf(`
install -m 755 %[1]s/qt %[1]s/qtd /usr/bin/
mkdir -p /etc/quicterm /etc/systemd/logind.conf.d
cp %[2]s/qtd.toml %[2]s/host_key %[2]s/sshd_config /etc/quicterm/
install -m 644 %[2]s/qtd.service %[2]s/sshd.service /etc/systemd/system/
install -m 644 %[2]s/logind.conf /etc/systemd/logind.conf.d/
rm -f /etc/nologin
for user in ann bob; do
	useradd --create-home --shell /bin/sh $user
	install -d -o $user -m 700 /home/$user/.ssh
	install -o $user -m 600 %[2]s/authorized_keys /home/$user/.ssh/authorized_keys
done
install -d -m 700 /root/.ssh
install -m 600 %[2]s/authorized_keys /root/.ssh/authorized_keys
`, bin, h.Dir)
	s := &systemdHost{Host: h, Machine: systemdtest.Boot(t, prepare, bin, h.Dir)}
	h.Know(installed, h.Path("host_key.pub"))
	return s
}

// shell opens a session of an account with a shell that has a known prompt.
func (s *systemdHost) shell(account string, flags ...string) *rig.Terminal {
	s.T.Helper()
	cmd := s.Via(installed, "connect", append([]string{"-t", "-l", account}, flags...), "exec env PS1='$ ' HISTFILE= sh")
	x := rig.Open(s.T, s.inside(cmd))
	x.Expect(`\$ `)
	return x
}

// inside makes a command run on the machine.
func (s *systemdHost) inside(cmd *exec.Cmd) *exec.Cmd {
	c := s.Command(append([]string{cmd.Path}, cmd.Args[1:]...)...)
	c.Env = cmd.Env
	return c
}

// hasLogins reports whether PAM tells the login manager of sessions.
func (s *systemdHost) hasLogins() bool {
	return s.Run("grep -l pam_systemd /etc/pam.d/common-session || true") != ""
}

// A person who types sees the daemon's restart as a short wait. Sessions are in scopes of their own,
// below the limits of their account's slice, and have nothing of what confines the daemon.
func TestSystemdRestart(t *testing.T) {
	s := newSystemdHost(t, "")
	s.Run(`for slice in user- quicterm-; do
	mkdir /etc/systemd/system/$slice.slice.d
	printf "[Slice]\nTasksMax=1000\n" >/etc/systemd/system/$slice.slice.d/limits.conf
done
systemctl daemon-reload
systemctl start qtd`)
	x := s.shell("ann", "--predict", "never")
	y := s.shell("root")

	// The holder has a scope of quicterm's, the program has that of its login if PAM makes one.
	scope := func(pattern, pid string, properties ...string) {
		t.Helper()
		group := s.Run("cat /proc/" + pid + "/cgroup")
		found := regexp.MustCompile(pattern).FindStringSubmatch(group)
		if found == nil {
			t.Fatalf("%s is in %s", pid, group)
		}
		got := s.Run("systemctl show -p SendSIGHUP,Description " + found[1])
		for _, want := range properties {
			if !strings.Contains(got+"\n", want+"\n") {
				t.Errorf("the scope has not %s:\n%s", want, got)
			}
		}
	}
	uid := s.Run("id -u ann")
	own := `(?m)^0::/quicterm\.slice/quicterm-` + uid + `\.slice/(qt-[0-9a-f]{8}\.scope)$`
	scope(own, s.Run("pgrep -u ann -x qtd"), "SendSIGHUP=yes", "Description=quicterm session of ann")
	x.Send("echo pid=$$\r")
	shell := x.Expect(`pid=(\d+)\r`)[1]
	if s.hasLogins() {
		scope(`(?m)^0::/user\.slice/user-`+uid+`\.slice/(session-\w+\.scope)$`, shell)
		x.Run("echo $XDG_RUNTIME_DIR", "/run/user/"+uid+`\r`)
		if users := s.Run("loginctl list-users"); !strings.Contains(users, "ann") {
			t.Errorf("the login manager knows no login of ann:\n%s", users)
		}
	} else {
		scope(own, shell)
	}
	// Above both are the limits of all sessions of the account.
	for _, pid := range []string{s.Run("pgrep -u ann -x qtd"), shell} {
		slice := s.Run("cut -d / -f 3 /proc/" + pid + "/cgroup")
		if got := s.Run("systemctl show -p TasksMax --value " + slice); got != "1000" {
			t.Errorf("%s may have %s processes", slice, got)
		}
	}
	daemon := s.Run("systemctl show -p MainPID --value qtd")
	if s.Run("readlink /proc/"+daemon+"/ns/mnt") == s.Run("readlink /proc/1/ns/mnt") {
		t.Error("the daemon has the mounts of the system: its unit does not confine it")
	}
	y.Run("test $(readlink /proc/self/ns/mnt) = $(readlink /proc/1/ns/mnt) && echo s''ame", "same")
	y.Run("touch /usr/bin/by-root && echo wr''itten", "written")
	if out := s.Run("setpriv --reuid ann --regid ann --init-groups --reset-env qtd grant"); !strings.HasPrefix(out, "quicterm-grant ") {
		t.Errorf("an account of the system gets no grant: %s", out)
	}
	for _, line := range []string{"NoNewPrivs", "Seccomp", "CapBnd"} {
		want := s.Run("grep ^" + line + ": /proc/1/status")
		y.Run("grep ^"+line+": /proc/self/status", strings.Join(strings.Fields(want), `\s+`)+`\r`)
	}

	x.Send("stty -echo; echo re''ady; cat\r")
	x.Expect("ready")
	restarted := make(chan error, 1)
	go func() { restarted <- s.Command("systemctl", "restart", "qtd").Run() }()
	longest := time.Duration(0)
	for n, after := 0, 0; after < 20; n++ { // until the restart is over, and 20 lines more
		sent := time.Now()
		x.Send(fmt.Sprintf("line %d\r", n))
		x.Expect(fmt.Sprintf("line %d\r\n", n))
		longest = max(longest, time.Since(sent))
		select {
		case err := <-restarted:
			if err != nil {
				t.Fatal(err)
			}
			after = 1
		default:
			if after > 0 {
				after++
			}
		}
	}
	t.Logf("a line took at most %v over the restart", longest)
	if now := s.Run("systemctl show -p MainPID --value qtd"); now == daemon {
		t.Error("the daemon was not restarted")
	}
	x.Send("\x04")
	x.Expect(`\$ `)
	x.Send("exit\r")
	x.Exit()
}

// bySSH returns a command of the client that reaches the machine by ssh.
func (s *systemdHost) bySSH(account, subcommand string, flags []string, args ...string) *exec.Cmd {
	s.Write("ssh_config", fmt.Sprintf("Host machine\nHostName 127.0.0.1\nPort 2222\nIdentityFile %s\nIdentitiesOnly yes\nUserKnownHostsFile %s\n",
		s.Path("id"), s.Path("known_hosts")))
	flags = append([]string{"-l", account, "--bootstrap", "ssh"}, flags...)
	return s.inside(s.Named("machine", s.Path("ssh_config"), subcommand, flags, args...))
}

func needSSHD(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(sshdFile); err != nil {
		t.Skip(err)
	}
}

// Logins end all their processes (KillUserProcesses=yes). A session that an ssh login has started lives
// on where the system allows it; otherwise the first connection says what to do.
func TestSystemdLogout(t *testing.T) {
	s := newSystemdHost(t, "")
	if !s.hasLogins() {
		t.Skip("libpam-systemd is not installed: logins have no session")
	}
	needSSHD(t)
	s.Run("systemctl start sshd")
	s.KnowName("127.0.0.1", 2222, s.Path("host_key.pub"))
	loggedOut := func(account string) {
		s.Await(account+" to be logged out", func() bool {
			out, err := s.Command("loginctl", "show-user", "--property=Sessions", "--value", account).Output()
			return err != nil || strings.TrimSpace(string(out)) == ""
		})
	}
	runs := func(script string) bool { return s.Command("sh", "-c", script).Run() == nil }
	connect := func(account string) *rig.Terminal {
		x := rig.Open(t, s.bySSH(account, "connect", []string{"-t"}, "exec env PS1='$ ' HISTFILE= sh"))
		x.Expect(`\$ `)
		return x
	}
	detach := func(x *rig.Terminal) {
		x.Send("\r~.")
		if status := x.Exit(); status != 0 {
			t.Errorf("exit status %d after a detach", status)
		}
	}

	// Nothing of bob's outlives his login.
	x := connect("bob")
	const warning = `qt: machine: sessions end when bob logs out (KillUserProcesses=yes): run loginctl enable-linger`
	if !strings.Contains(x.Out.String(), warning) {
		t.Errorf("the first connection does not say %q", warning)
	}
	want(t, func() *exec.Cmd { return s.bySSH("bob", "doctor", nil) },
		"linger warn .* ends the sessions when bob logs out of it — loginctl enable-linger bob on the server")
	detach(x)
	bobLeaves := func() {
		loggedOut("bob")
		s.Await("the end of bob's session", func() bool { return !runs("pgrep -u bob qtd") })
	}
	bobLeaves()
	asBob := func(command string) string {
		return s.Run("ssh -F " + s.Path("ssh_config") + " bob@machine '" + command + " 2>&1'") // what comes by two channels of ssh may change places
	}
	if got := asBob("qt connect localhost echo here"); got != "qt: "+strings.TrimPrefix(warning, "qt: machine: ")+"\nhere" {
		t.Errorf("the first connection to this machine says %q", got)
	}
	bobLeaves()

	// The service manager of ann lives on.
	s.Run("loginctl enable-linger ann")
	uid := s.Run("id -u ann")
	s.Await("ann's service manager", func() bool { return runs("systemctl is-active user@" + uid) })
	x = connect("ann")
	if strings.Contains(x.Out.String(), "logs out") {
		t.Error("it warns although ann lingers")
	}
	x.Run("cat /proc/self/cgroup", `0::/user\.slice/user-`+uid+`\.slice/user@`+uid+`\.service/quicterm\.slice/quicterm-`+uid+`\.slice/qt-[0-9a-f]{8}\.scope\r`)
	x.Run("kept=th''ere", "")
	detach(x)
	loggedOut("ann")
	x = rig.Open(t, s.bySSH("ann", "attach", nil))
	x.Send("echo st''ill $kept\r")
	x.Expect("still there")
	detach(x)

	// A daemon that root starts by hand serves on.
	s.Run("ssh -F " + s.Path("ssh_config") + " root@machine 'setsid qtd serve </dev/null >/dev/null 2>&1 &'")
	loggedOut("root")
	y := s.shell("ann")
	y.Run("cat /proc/self/cgroup", `0::/user\.slice/user-`+uid+`\.slice/session-\w+\.scope\r`)
}

// A reload to settings that would keep all out fails, and changes nothing. A daemon that cannot start is
// tried again until it can, without end, and not more than once in 5 s.
func TestSystemdMistakes(t *testing.T) {
	skipUnderRace(t)
	needSSHD(t)
	s := newSystemdHost(t, "")
	s.Run("systemctl start qtd")
	fails := func(command, why string) {
		t.Helper()
		out, err := s.Command("sh", "-c", command+"; status=$?; journalctl -u qtd -o cat -n 20; exit $status").CombinedOutput()
		if err == nil || !strings.Contains(string(out), why) {
			t.Errorf("%s: %v, without %q:\n%s", command, err, why, out)
		}
	}
	main := func() string { return s.Run("systemctl show -p MainPID --value qtd") }
	works := func() {
		t.Helper()
		cmd := s.inside(s.Via(installed, "connect", []string{"-l", "ann"}, "echo ran"))
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ran\n" {
			t.Errorf("got %q, %v", out, err)
		}
	}
	works()
	first := main()

	const config = "/etc/ssh/sshd_config"
	s.Run("cp " + config + " /saved; echo Nonsense yes >>" + config)
	fails("systemctl reload qtd", "Nonsense")
	s.Run("cp /saved " + config + "; cp /etc/quicterm/qtd.toml /saved; echo 'allow_users = [\"bob@10.0.0.0/33\"]' >>/etc/quicterm/qtd.toml")
	fails("systemctl reload qtd", "is not a network")
	if got := main(); got != first {
		t.Errorf("the daemon was process %s, and is %s", first, got)
	}
	works()

	fails("systemctl restart qtd", "is not a network")
	restarts := func() int {
		n, _ := strconv.Atoi(s.Run("systemctl show -p NRestarts --value qtd"))
		return n
	}
	begun := time.Now()
	s.Await("the second attempt", func() bool { return restarts() == 2 })
	if took := time.Since(begun); took < 4*time.Second {
		t.Errorf("two attempts took %v", took)
	}
	s.Run("cp /saved /etc/quicterm/qtd.toml")
	s.Await("the daemon", func() bool { return s.Run("systemctl is-active qtd || true") == "active" })
	works()

	// More often than the usual limit of 5 in 10 s, and without delay.
	for range 7 {
		pid := main()
		s.Run("kill -KILL " + pid)
		begun := time.Now()
		s.Await("the next daemon", func() bool { now := main(); return now != pid && now != "0" })
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("a daemon that was killed came back after %v", took)
		}
	}
	s.Await("the last daemon", func() bool { return s.Run("systemctl is-active qtd || true") == "active" })
	works()
}
