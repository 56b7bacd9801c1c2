//go:build linux || darwin

package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// qtdDoctor returns what makes commands of the doctor of a host's daemon.
func qtdDoctor(h *rig.Host) func() *exec.Cmd {
	return func() *exec.Cmd {
		return exec.Command(filepath.Join(bin, "qtd"), "doctor", "--config", h.Path("qtd.toml"))
	}
}

// Of a daemon that runs well, the doctor says so.
func TestDoctorOfDaemon(t *testing.T) {
	skipUnderRace(t)
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr)
	holder := x.Holder()
	ports := "ports ok open: udp 127.0.0.1:[0-9]+, tcp 127.0.0.1"
	if runtime.GOOS != "linux" {
		ports = "ports skip "
	}
	want(t, qtdDoctor(h), "settings ok .*qtd.toml has no errors", "daemon ok qtd .* runs, at 127.0.0.1", ports,
		"hostkey ok .*host_key", "state ok ", "runtime ok .*run", "buffers ok|warn|skip ", "limits ok max_sessions_per_user 100",
		"linger ok|warn ", "holders ok 1 of qtd ")
	if strings.Contains(h.Log.String(), "event=grant") {
		t.Error("the doctor takes one of the tokens that an account may have")
	}

	if err := syscall.Kill(holder, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	want(t, qtdDoctor(h), "holders warn sessions that do not answer: 1; others: none — look at their processes")
	syscall.Kill(holder, syscall.SIGCONT)
	x.Send("exit\r")
	x.Exit()

	drain := func(flags ...string) {
		t.Helper()
		args := append([]string{"drain", "--config", h.Path("qtd.toml")}, flags...)
		if out, err := exec.Command(filepath.Join(bin, "qtd"), args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	drain()
	want(t, qtdDoctor(h), "daemon fail it starts no new sessions: .*draining — qtd drain --off")
	drain("--off")
	want(t, qtdDoctor(h), "daemon ok ")
}

// wantFailure runs a command of qtd, which must fail and say why.
func wantFailure(t *testing.T, cmd *exec.Cmd, why string) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err == nil || !regexp.MustCompile(`^qtd: .*`+why).Match(out) {
		t.Errorf("%v: got %v, %q, want %q", cmd.Args, err, out, why)
	}
}

// What would keep clients out fails the test of a start, which says why.
func TestServeTest(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Stop(syscall.SIGTERM)
	test := func() *exec.Cmd {
		return exec.Command(filepath.Join(bin, "qtd"), "serve", "--test", "--config", h.Path("qtd.toml"))
	}
	refused := func(why string) {
		t.Helper()
		wantFailure(t, test(), why)
	}
	wantOutput(t, test(), "")
	settings, err := os.ReadFile(h.Path("qtd.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []struct{ line, why string }{
		{`allow_users = ["ann@10.0.0.0/33"]`, `qtd.toml:1:16: allow_users .*is not a network`},
		{`allow_users = ["bob", "ann@10.0.0.0/33"]`, `qtd.toml:1:23: allow_users .*is not a network`},
		{`allow_users = ["ann@300.0.0.0/8"]`, `allow_users .*is not a network`},
		{`allow_users = ["ann bob"]`, `allow_users .*each pattern is a string of its own`},
		{`allow_groups = [""]`, `allow_groups .*an empty pattern`},
		{`max_sessions_per_user = 0`, `qtd.toml:1:25: max_sessions_per_user is 0`},
		{`lisen = []`, `there is no setting "lisen"`},
	} {
		h.Write("qtd.toml", wrong.line+"\n"+string(settings))
		refused(wrong.why)
	}
	h.Write("qtd.toml", string(settings))
	h.Write("host_key", "no key")
	refused("hostkey: .* — correct host_key")
}

// A daemon that gives no grants tells its own account that it runs.
func TestDoctorOfDaemonWithoutGrants(t *testing.T) {
	h := newHost(t)
	h.Settings["grants"] = `"off"`
	h.Start()
	ports := "ports ok open: udp "
	if runtime.GOOS != "linux" {
		ports = "ports skip "
	}
	want(t, qtdDoctor(h), "daemon ok qtd .* runs, at ", ports)
	h.Stop(syscall.SIGTERM)
	want(t, qtdDoctor(h), "daemon warn none runs")
}

// What keeps a daemon from working has a line each.
func TestDoctorOfBrokenDaemon(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Stop(syscall.SIGTERM)
	port := "ports ok free: udp "
	taken := "ports fail taken: udp 127.0.0.1:[0-9]+, by process [1-9][0-9]* of user id [0-9]+ — end that process"
	if runtime.GOOS != "linux" {
		port, taken = "ports skip ", "ports skip "
	}
	want(t, qtdDoctor(h), "daemon warn none runs for this account — qtd serve starts one", port, "holders ok no session")
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(h.Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want(t, qtdDoctor(h), taken)

	mode := func(name string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(h.Path(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	mode("host_key", 0o644)
	mode("state", 0o755)
	mode("run", 0o777)
	if os.Geteuid() != 0 { // its own directory, whose parent is the account's matter
		mode("run/"+strconv.Itoa(os.Geteuid()), 0o777)
	}
	unsafe := "runtime fail .*mode|write"
	want(t, qtdDoctor(h), "hostkey fail .*has mode 0644: .* — chmod 600 ", "state warn .*has mode 0755: .* — chmod 700 ", unsafe)
	mode("host_key", 0o600)

	limited := func() *exec.Cmd {
		return exec.Command("sh", "-c", `ulimit -n 200; exec "$0" "$@"`, filepath.Join(bin, "qtd"), "doctor", "--config", h.Path("qtd.toml"))
	}
	want(t, limited, "limits warn a process may open 200 files, and 100 sessions need 1200 — raise LimitNOFILE")

	h.Write("host_key", "no key")
	if err := os.RemoveAll(h.Path("state")); err != nil {
		t.Fatal(err)
	}
	h.Write("state", "no directory")
	want(t, qtdDoctor(h), "hostkey fail .* — correct host_key", "state fail .*is no directory — remove it")
	h.Write("qtd.toml", "bogus = 1\n")
	want(t, qtdDoctor(h), "settings fail .*bogus.* — correct the file")
}
