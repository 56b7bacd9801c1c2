//go:build linux || darwin

package e2e

import (
	"encoding/pem"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A host on which nothing runs but sshd gives a shell, which moves to QUIC.
func TestConnectBySSH(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	x := rig.Open(t, s.QT("connect", []string{"-t"}, "exec env PS1='$ ' HISTFILE= sh"))
	x.Expect(`\$ `)
	x.Run("echo o''ver ssh", "over ssh")
	awaitQUIC(x)
	x.Send("exit 3\r")
	if status := x.Exit(); status != 3 {
		t.Errorf("exit status %d, want 3\n%s", status, x.Out)
	}
}

// awaitQUIC types ~# until it says that the session is on QUIC.
func awaitQUIC(x *rig.Terminal) {
	x.T.Helper()
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		x.Send("\r~#")
		carriers := x.Expect(`carrier.*\r\n`)[0]
		if strings.Contains(carriers, "quic") {
			return
		}
		if time.Since(begun) > rig.Patience {
			x.T.Fatalf("the session does not move to QUIC: %s", carriers)
		}
		x.Expect(`last contact.*\r\n`)
	}
}

// protect gives the user's key file a passphrase.
func (s *sshHost) protect(passphrase string) {
	t := s.T
	t.Helper()
	key, err := ssh.ParseRawPrivateKey([]byte(s.Read("id")))
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	s.Write("id", string(pem.EncodeToMemory(block)))
}

// ssh asks the user on the terminal, as it always does, and Ctrl-C or Ctrl-\ there ends both.
func TestSSHAsks(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	s.protect("open sesame")
	x := rig.Open(t, s.QT("connect", nil, "echo let in"))
	x.Expect("Enter passphrase for key '.*': ")
	x.Send("wrong\r")
	x.Expect("Enter passphrase for key '.*': ")
	x.Send("open sesame\r")
	x.Expect("let in\r\n")
	if status := x.Exit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if strings.Contains(x.Out.String(), "sesame") {
		t.Error("the passphrase was shown")
	}

	for typed, want := range map[string]syscall.Signal{"\x03": syscall.SIGINT, "\x1c": syscall.SIGQUIT} {
		y := rig.Open(t, s.QT("connect", nil, "echo let in"))
		y.Expect("Enter passphrase for key '.*': ")
		y.Send(typed)
		y.Expect("^\r\nqt: ended by SIG(INT|QUIT)\r\n")
		if status := y.Exit(); status != 128+int(want) {
			t.Errorf("exit status %d after %q, want %d", status, typed, 128+int(want))
		}
		<-y.Closed() // no ssh is left on the terminal
	}

	// After Ctrl-Z the question comes again, and the first key counts.
	z := rig.Open(t, s.QT("connect", nil, "echo let in"))
	z.Expect("Enter passphrase for key '.*': ")
	z.Send("\x1a")
	var state syscall.WaitStatus
	for start := time.Now(); !state.Stopped(); time.Sleep(time.Millisecond) {
		if _, err := syscall.Wait4(z.Cmd.Process.Pid, &state, syscall.WUNTRACED|syscall.WNOHANG, nil); err != nil || time.Since(start) > rig.Patience {
			t.Fatalf("Ctrl-Z does not stop it: %v", err)
		}
	}
	z.Cmd.Process.Signal(syscall.SIGCONT)
	z.Expect("Enter passphrase for key '.*': ")
	z.Send("open sesame\r")
	z.Expect("let in\r\n")
	z.Exit()
}

// A question of ssh whose answer is shown is one too, and what ssh says only to a terminal is shown.
func TestSSHAsksAboutHost(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	s.SSH = append(s.SSH, "StrictHostKeyChecking ask")
	s.Write("known_hosts_ssh", "")
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	s.Write("tools/ssh", "#!/bin/sh\n[ -t 2 ] && printf '\\rConfirm user \\033[2Jpresence\\r\\n' >&2\nexec "+ssh+" \"$@\"\n")
	if err := os.Chmod(s.Path("tools/ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	open := func() *rig.Terminal {
		cmd := s.QT("connect", nil, "echo let in")
		cmd.Env = append(cmd.Env, "PATH="+s.Path("tools")+":"+os.Getenv("PATH"))
		return rig.Open(t, cmd)
	}
	x := open()
	x.Expect(`^Confirm user \?\[2Jpresence\r\nThe authenticity of host (?s:.*)\(yes/no/\[fingerprint\]\)\? `)
	x.Send("nn\x7fo")
	x.Expect("nn\b \bo")
	x.Send("\x03")
	x.Expect("^\r\nqt: ended by SIGINT\r\n")
	if status := x.Exit(); status != 128+int(syscall.SIGINT) {
		t.Errorf("exit status %d", status)
	}
	x = open()
	x.Expect(`\(yes/no/\[fingerprint\]\)\? `)
	x.Send("maybe\r")
	x.Expect(`^maybe\r\nPlease type 'yes', 'no' or the fingerprint: `)
	x.Send("yes\r")
	x.Expect(`^yes\r\nWarning: Permanently added .*\r\n`)
	x.Expect("let in\r\n")
	x.Exit()
}

// An interrupt is for the remote program, not for ssh.
func TestInterruptOverSSH(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	s.BlockNetwork()
	x := rig.Open(t, s.QT("connect", []string{"-T"}, "trap 'echo interrupted; exit 4' INT; echo ready; while :; do sleep 0.1; done"))
	x.Expect("ready")
	x.Send("\x03")
	x.Expect("interrupted")
	if status := x.Exit(); status != 4 {
		t.Errorf("exit status %d, want 4\n%s", status, x.Out)
	}
}

// All commands reach the host by ssh.
func TestCommandsBySSH(t *testing.T) {
	spareDevices(t)
	s := newSSHHost(t)
	s.Serve()
	x := rig.Open(t, s.QT("connect", []string{"-t", "-s", "work"}, "exec env PS1='$ ' HISTFILE= sh"))
	x.Expect(`\$ `)
	if out := string(mustOutput(t, s.QT("ls", nil))); !strings.Contains(out, "work") || !strings.Contains(out, "@127.0.0.1") {
		t.Errorf("the listing is\n%s", out)
	}
	x.Send("~.")
	x.Expect("left; qt attach -F .* target work resumes, ")
	x.Exit()
	y := rig.Open(t, s.QT("attach", nil, "work"))
	y.Send("echo ag''ain\r")
	y.Expect("again")
	cmd := exec.Command(filepath.Join(bin, "qt"), "revoke", "-F", s.Config(), "all", target)
	cmd.Env = append(s.Env(), "XDG_STATE_HOME="+s.Path("client-state"))
	mustOutput(t, cmd)
	y.Expect("access was withdrawn")
	mustOutput(t, s.QT("kill", nil, "work"))
	if out := string(mustOutput(t, s.QT("ls", nil))); strings.Contains(out, "work") && !strings.Contains(out, "exited") {
		t.Errorf("the listing after the kill is\n%s", out)
	}
}

// The login may print what it likes, without the end of a line too, and run any shell.
func TestNoisyLogin(t *testing.T) {
	t.Parallel()
	shells := []string{"sh", "bash", "dash", "zsh", "fish", "csh", "tcsh", "ksh"}
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(err)
			}
			s := newSSHHost(t)
			key := string(ssh.MarshalAuthorizedKey(s.Key))
			s.Write("authorized_keys", fmt.Sprintf(`command="printf 'motd\n\033[2J\n\033]0;title\007'; echo complaint >&2; exec %s -c \"$SSH_ORIGINAL_COMMAND\"" `, path)+key)
			s.Serve()
			wantOutput(t, s.QT("connect", nil, "echo in"), "in\n")
		})
	}
}

// qtd is found in the user's own directory too.
func TestQtdInHome(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	if err := os.MkdirAll(s.Path("home/.local/bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.Path("remote/qtd"), s.Path("home/.local/bin/qtd")); err != nil {
		t.Fatal(err)
	}
	wantOutput(t, s.QT("connect", nil, "echo in"), "in\n")
}

// Where there is no sshd, a daemon is reached directly.
func TestDirectWithoutSSHD(t *testing.T) {
	s := newSSHHost(t)
	s.Start()
	s.SSHD = netip.MustParseAddrPort("127.0.0.1:1")
	s.Client["port"] = fmt.Sprint(s.Addr.Port())
	s.SSH = append(s.SSH, "UserKnownHostsFile "+s.Path("known_hosts"))
	wantOutput(t, s.QT("connect", nil, "echo in"), "in\n")
	s.Stop(syscall.SIGTERM)
	wantError(t, s.QT("connect", nil, "true"), "ssh to target: connect to host 127.0.0.1 port 1: Connection refused; and nothing answers at port .*")
}

// awaitReached waits until a client keeps how it reaches the daemon, for its owner alone: what says
// a part of it.
func (s *sshHost) awaitReached(what string) {
	t := s.T
	t.Helper()
	file := s.Path("client-state/quicterm/reached.json")
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), what) {
			break
		} else if time.Since(start) > rig.Patience {
			t.Fatalf("nothing is remembered: %s, %v", content, err)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v; want a file for its owner alone", info, err)
	}
}

// A daemon that a grant has started is dialed directly the next time: ssh has brought its key.
func TestGrantedReachedBefore(t *testing.T) {
	s := newSSHHost(t)
	s.Write("qtd.toml", s.Read("qtd.toml")+fmt.Sprintf("authorized_keys_files = [%q]\n", s.Path("authorized_keys")))
	s.Serve()
	x := rig.Open(t, s.QT("connect", []string{"-t"}, "exec env PS1='$ ' HISTFILE= sh"))
	x.Expect(`\$ `)
	s.awaitReached(`"port":6`)
	x.Send("exit\r")
	x.Exit()

	// Once it has ended, ssh starts another one, which is dialed the next time as well.
	reached := "client-state/quicterm/reached.json"
	s.endGranted()
	wantOutput(t, s.QT("connect", nil, "echo in"), "in\n")
	if content := s.Read(reached); strings.Contains(content, "no_login") {
		t.Errorf("a daemon that did not run is not dialed again: %s", content)
	}

	// Another port of sshd may lead to another machine. It has a daemon's key only if it was reached.
	sshd := s.SSHD
	s.SSHD = netip.MustParseAddrPort("127.0.0.1:1")
	wantError(t, s.QT("connect", nil, "true"), "Connection refused")
	s.Write(reached, strings.Replace(s.Read(reached), sshd.String(), s.SSHD.String(), 1))
	wantOutput(t, s.QT("connect", nil, "echo in"), "in\n")

	// Another daemon at that port is not trusted, and ssh is asked again, without an alarm.
	s.Write("known_hosts_ssh", s.Read("known_hosts_ssh")+"127.0.0.1 "+s.Read("host_key.pub"))
	s.Write(reached, regexp.MustCompile(`"key":"SHA256:[^"]+"`).ReplaceAllString(s.Read(reached), `"key":"SHA256:another"`))
	wantError(t, s.QT("connect", nil, "true"), "Connection refused")
	s.SSHD = sshd
	wantOutput(t, s.QT("connect", nil, "echo in"), "in\n")

	// A key that the user's files revoke is not trusted, even if a grant brings it.
	daemon, err := ssh.ParsePrivateKey([]byte(s.Read("state/host_key")))
	if err != nil {
		t.Fatal(err)
	}
	s.Write("known_hosts_ssh", s.Read("known_hosts_ssh")+"@revoked * "+string(ssh.MarshalAuthorizedKey(daemon.PublicKey())))
	s.Write("client-state/quicterm/reached.json", "[]")
	cmd := s.QT("connect", []string{"-v"}, "cat") // which lasts until the daemon's port was tried
	stdin, log := inputPipe(t, cmd), new(rig.Output)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	log.Await(t, 0, regexp.MustCompile(" is revoked"))
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
}

// busyTries is how often a test tries what must happen within a fixed time, which a busy machine may miss.
const busyTries = 3

// A daemon that was reached is dialed directly the next time, and by ssh if that fails.
func TestReachedBefore(t *testing.T) {
	s := newSSHHost(t)
	s.Start()
	s.Serve()
	s.Write("known_hosts_ssh", s.Read("known_hosts_ssh")+"127.0.0.1 "+s.Read("host_key.pub"))
	bySSH := regexp.MustCompile("proof=ssh (.* )?event=login")
	// connect runs a command on the host, and checks whether ssh has logged in for it. On a busy machine
	// it may where the daemon does not answer within tunnelDelay of package client, so it has busyTries.
	connect := func(why string, want bool, flags ...string) {
		t.Helper()
		for range busyTries {
			before := s.Log.Len()
			wantOutput(t, s.QT("connect", flags, "echo in"), "in\n")
			if want {
				s.Log.Await(t, before, bySSH)
				return
			}
			if !bySSH.MatchString(s.Log.String()[before:]) {
				return
			}
		}
		t.Errorf("%s: ssh logs in", why)
	}
	x := rig.Open(t, s.QT("connect", []string{"-t"}, "exec env PS1='$ ' HISTFILE= sh"))
	x.Expect(`\$ `)
	s.awaitReached(fmt.Sprint(s.Addr.Port()))
	x.Send("exit\r")
	x.Exit()

	s.Client["port"] = fmt.Sprint(s.Addr.Port())
	connect("the daemon was reached", false)
	connect("to be reached directly", false, "--bootstrap", "direct")
	connect("to be reached by ssh", true, "--bootstrap", "ssh")

	s.Write("none", "")
	s.Stop(syscall.SIGTERM)
	s.Settings["authorized_keys_files"] = fmt.Sprintf("[%q]", s.Path("none"))
	s.Start()
	connect("the key does not let the user in directly", true)
	s.SSH = append(s.SSH, "Port 1") // where no sshd is
	wantError(t, s.QT("connect", nil, "true"), "permission denied by target for .*authorized_keys")
	s.SSH = nil

	s.Stop(syscall.SIGTERM)
	wantOutput(t, s.QT("connect", nil, "echo in"), "in\n") // qtd grant starts a daemon
	s.endGranted()

	// What is remembered does not say whom to trust.
	s.Settings["authorized_keys_files"] = fmt.Sprintf("[%q]", s.Path("authorized_keys"))
	s.Start()
	s.Write("known_hosts_ssh", strings.Replace(s.Read("known_hosts_ssh"), "127.0.0.1 ", "127.0.0.2 ", 1))
	connect("the daemon's key is not known", true)
}

// That UDP is blocked is remembered, and ssh is not needed for it.
func TestUDPBlockedIsRemembered(t *testing.T) {
	s := newSSHHost(t)
	s.Start()
	s.Serve()
	s.Write("known_hosts_ssh", s.Read("known_hosts_ssh")+"127.0.0.1 "+s.Read("host_key.pub"))
	x := rig.Open(t, s.QT("connect", []string{"-t"}, "exec env PS1='$ ' HISTFILE= sh"))
	s.awaitReached(fmt.Sprintf(`"port":%d`, s.Addr.Port()))
	x.Send("exit\r")
	x.Exit()
	p := proxyBoth(t, s.Host)
	p.Set(netem.Config{Down: true})
	const file = "client-state/quicterm/reached.json"
	reached := strings.Replace(s.Read(file), fmt.Sprint(s.Addr.Port()), fmt.Sprint(p.Addr().Port()), 1)
	for try := 1; ; try++ { // on a busy machine, TCP may take longer than ssh waits
		s.Write(file, reached)
		before := s.Log.Len()
		y := rig.Open(t, s.QT("connect", []string{"-t"}, "exec env PS1='$ ' HISTFILE= sh"))
		y.Expect(`\$ `)
		s.awaitReached(`"no_udp":true`)
		y.Send("exit\r")
		y.Exit()
		if !strings.Contains(s.Log.String()[before:], "Accepted publickey") {
			break
		}
		if try == busyTries {
			t.Fatal("ssh logs in although TCP reaches the daemon")
		}
	}

	s.Write(file, "[]")
	s.Client["port"] = fmt.Sprint(p.Addr().Port())
	z := rig.Open(t, s.QT("connect", []string{"-t", "--bootstrap", "direct"}, "exec env PS1='$ ' HISTFILE= sh"))
	z.Expect(`\$ `)
	s.awaitReached(`"no_udp":true`)
	z.Send("exit\r")
	z.Exit()
}

// Short commands find out too that the daemon can be reached without ssh, or not by the user's key.
func TestShortCommandsLearn(t *testing.T) {
	s := newSSHHost(t)
	s.Settings["authorized_keys_files"] = fmt.Sprintf("[%q]", s.Path("authorized_keys"))
	s.Start()
	s.Serve()
	s.Write("known_hosts_ssh", s.Read("known_hosts_ssh")+"127.0.0.1 "+s.Read("host_key.pub"))
	bySSH := regexp.MustCompile("proof=ssh ")
	run := func(why string, want bool) {
		t.Helper()
		for try := 1; ; try++ {
			before := s.Log.Len()
			wantOutput(t, s.QT("connect", nil, "echo in"), "in\n")
			switch got := bySSH.MatchString(s.Log.String()[before:]); {
			case got == want:
				return
			case want || try == busyTries: // a busy machine may take longer than tunnelDelay of package client
				t.Fatalf("%s: by ssh: %t\n%s", why, got, s.Read("client-state/quicterm/reached.json"))
			}
		}
	}
	run("nothing is known", true)
	run("one command has been there", false)

	restart := func(keys string) {
		s.Stop(syscall.SIGTERM)
		s.Settings["authorized_keys_files"] = fmt.Sprintf("[%q]", s.Path(keys))
		s.Start()
	}
	s.Write("none", "")
	restart("none")
	run("the key does not let the user in", true)
	s.awaitReached(`"no_login":true`)
	restart("authorized_keys")
	run("it was refused", true)
}
