//go:build linux || darwin

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A finding is an element of the array of qt doctor --json and qtd doctor --json.
type finding struct{ ID, State, Found, Todo string }

// findings runs a doctor, whose exit status must be that of its findings.
func findings(t *testing.T, cmd *exec.Cmd) map[string]finding {
	t.Helper()
	cmd.Args = append(cmd.Args, "--json")
	stderr := new(strings.Builder)
	cmd.Stderr = stderr
	out, err := cmd.Output()
	var all []finding
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, stderr)
	}
	byID := make(map[string]finding)
	status := 0
	for _, f := range all {
		byID[f.ID] = f
		if f.State == "fail" {
			status = 1
		}
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != status || len(byID) != len(all) {
		t.Errorf("%v, want status %d and an id for each: %+v\n%s", err, status, all, stderr)
	}
	return byID
}

// want awaits lines of a doctor: the id, the state, and what the rest matches. A busy machine may
// seem to be a network on which nothing answers in time.
func want(t *testing.T, doctor func() *exec.Cmd, lines ...string) {
	t.Helper()
	for until := time.Now().Add(rig.Patience); ; {
		all := findings(t, doctor())
		var wrong []string
		for _, line := range lines {
			words := strings.SplitN(line, " ", 3)
			f := all[words[0]]
			got := f.State + "," + f.Found + " — " + f.Todo
			if !regexp.MustCompile("^(?:" + words[1] + "),(?:" + words[2] + ")").MatchString(got) {
				wrong = append(wrong, words[0]+" "+got+"\nwant "+line)
			}
		}
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(until) {
			t.Errorf("%s", strings.Join(wrong, "\n"))
			return
		}
	}
}

// Of a host that can be reached well, the doctor says so, and it logs in as every command does.
func TestDoctor(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr)
	x.Run("echo re''ady", "ready")
	addr := regexp.QuoteMeta(h.Addr.String())
	want(t, func() *exec.Cmd { return h.QT("doctor") },
		"settings ok .*qt.toml has no errors", "name ok 127.0.0.1 is 127.0.0.1",
		"udp ok "+addr+" answers in", "tcp ok "+addr+" answers in", "mtu ok packets of 1200 bytes arrive",
		"nat ok no NAT", "state ok .* can be written", "paths ok lo0?: UDP .* ms, TCP .* ms",
		"hostkey ok ssh-ed25519 SHA256:.* is the key that is known", "auth ok logged in over (UDP|TCP) by SHA256:",
		"version ok qt .* here, qtd .* there", "clock ok ", "limits ok 1 of 100 sessions; ",
		"linger ok|warn|skip ")
	x.Send("exit\r")
	x.Exit()
}

// What is wrong with the login has a line, and the lines of the network are not wrong for it.
func TestDoctorOfLogin(t *testing.T) {
	h := newHost(t)
	h.Settings["max_sessions_per_user"] = "1"
	h.Start()
	doctor := func() *exec.Cmd { return h.Via(h.Addr, "doctor", nil) }

	x := h.Shell(h.Addr)
	x.Run("echo re''ady", "ready")
	want(t, doctor, "limits fail 1 of 1 sessions; .*: no new session — end sessions with qt kill")

	keys := h.Read("authorized_keys")
	h.Write("authorized_keys", "")
	want(t, doctor, "auth fail permission denied by 127.0.0.1 for .*authorized_keys", "udp ok ", "hostkey ok ",
		"limits skip ", "clock skip ", "linger skip ", "version skip ")
	h.Write("authorized_keys", keys)

	known := h.Read("known_hosts")
	h.Write("known_hosts", "")
	want(t, doctor, "hostkey fail .* — .*known_hosts", "udp ok ", "tcp ok ", "auth skip not tried: see hostkey")
	if h.Read("known_hosts") != "" {
		t.Error("the doctor has accepted a key")
	}
	h.NewKey("other")
	h.Know(h.Addr, h.Path("other.pub"))
	want(t, doctor, "hostkey fail .* — if the server has a new key, remove the old one")
	h.Write("known_hosts", known)
}

// Where nothing answers, the doctor says so of what it has tried.
func TestDoctorWhereNothingAnswers(t *testing.T) {
	h := newHost(t)
	h.Client["port"] = "0"
	want(t, func() *exec.Cmd { return h.QT("doctor") }, "settings fail .*port.* — correct the file")
	delete(h.Client, "port")
	want(t, func() *exec.Cmd { return h.To("nowhere.invalid", 4433, "doctor", nil) }, "name fail nowhere.invalid: .* — check the name",
		"udp skip not tried", "paths skip not tried", "auth skip not tried: see name")
	want(t, func() *exec.Cmd { return h.QT("doctor") }, "name ok ", "udp fail no answer from .* — check that qtd runs there",
		"tcp fail no answer from .*refused", "paths fail lo0?: UDP no, TCP no", "mtu skip ", "nat skip ", "auth skip not tried: see udp")
}

// A network that blocks UDP is told of, and that sessions run over TCP.
func TestDoctorWhereUDPIsBlocked(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := proxyBoth(t, h)
	p.Set(netem.Config{Down: true})
	want(t, func() *exec.Cmd { return h.Via(p.Addr(), "doctor", nil) },
		"udp warn no answer from .*: nothing comes back — .*open UDP port .*sessions run over TCP meanwhile", "tcp ok ",
		"mtu skip not measured: no answer by UDP", "paths ok lo0?: UDP no, TCP ", "auth ok logged in over TCP")
}

// By ssh, the doctor learns where the daemon is, and tells when there is none, and why.
func TestDoctorBySSH(t *testing.T) {
	skipUnderRace(t)
	s := newSSHHost(t)
	s.Serve()
	doctor := func() *exec.Cmd { return s.QT("doctor", nil) }
	want(t, doctor, "udp ok .*:6[0-9]{4} answers in", "tcp ok ", "hostkey ok ", "auth ok logged in over ssh", "version ok ")

	// A login by ssh needs no key of the daemon, but the next one without ssh does.
	out, err := doctor().CombinedOutput()
	port := regexp.MustCompile(`ok +udp .*:(6[0-9]{4}) answers`).FindSubmatch(out)
	if err != nil || port == nil {
		t.Fatalf("%v, %s", err, out)
	}
	before := s.Read("known_hosts_ssh")
	s.Write("known_hosts_ssh", before+fmt.Sprintf("[127.0.0.1]:%s %s", port[1], ssh.MarshalAuthorizedKey(s.NewKey("other"))))
	want(t, doctor, "hostkey warn .*has changed.* — if the server has a new key, remove the old one", "auth ok logged in over ssh")
	s.Write("known_hosts_ssh", before)

	s.Write("remote/qtd", "#!/bin/sh\necho 'qtd: unknown command grant' >&2\nexit 1\n")
	want(t, doctor, "version fail .* — update qt here, or qtd there with qt install", "auth skip not tried: see version",
		"udp skip not tried: the daemon's port is not known")
	s.Write("authorized_keys", "")
	want(t, doctor, "auth fail ssh to .*Permission denied", "udp skip ", "name ok ")
}
