package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/rig"
)

// suRules are those of PAM for su: an account that PAM refuses, limits, variables, and a note of each
// session.
const suRules = `auth sufficient pam_rootok.so
auth required pam_deny.so
account required pam_succeed_if.so quiet user != barred
account required pam_permit.so
session required pam_limits.so conf=/etc/test.limits
session required pam_env.so readenv=1 envfile=/etc/test.env
session required pam_umask.so umask=0027
session required pam_exec.so /etc/note
`

// pamHost makes a host with the accounts ann and barred, and PAM rules of its own, inside a test that has
// its own mounts.
func pamHost(t *testing.T) *rig.Host {
	t.Helper()
	if out, err := exec.Command("su", "--version").Output(); err != nil || !strings.Contains(string(out), "util-linux") {
		t.Skip("su is not that of util-linux")
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ownTemporary(t)
	h := newHost(t)
	rig.IP(t, "link", "set", "lo", "up")
	ownEtc(t)
	check(unix.Mount("tmpfs", "/home", "tmpfs", 0, "mode=755"))
	syscall.Umask(0o022)
	for file, content := range map[string]string{
		"passwd":      "root:x:0:0::/root:/bin/sh\nann:x:77001:77001::/home/ann:/bin/sh\nbarred:x:77002:77001::/home/barred:/bin/sh\n",
		"group":       "root:x:0:\nann:x:77001:\ntty:x:5:\nteam:x:77003:ann\n",
		"shadow":      "root:*:1::::::\nann:*:19000:0:99999:7:::\nbarred:*:19000:0:99999:7:::\n",
		"pam.d/su":    suRules,
		"test.limits": "ann hard nofile 77\n",
		"test.env":    "FROM_PAM=yes\nUSER=other\nLD_PRELOAD=/lib/none\n",
	} {
		check(os.WriteFile("/etc/"+file, []byte(content), 0o644))
	}
	syscall.ForkLock.RLock() // no other process has it open for writing
	err := os.WriteFile("/etc/note", []byte("#!/bin/sh\necho $PAM_TYPE $PAM_USER >>/run/notes\n"), 0o755)
	syscall.ForkLock.RUnlock()
	check(err)
	for _, name := range []string{"ann", "barred"} {
		dir := "/home/" + name + "/.ssh"
		check(os.MkdirAll(dir, 0o755))
		check(os.WriteFile(dir+"/authorized_keys", ssh.MarshalAuthorizedKey(h.Key), 0o644))
	}
	for _, name := range []string{bin, filepath.Join(bin, "qt"), filepath.Join(bin, "qtd"), h.Dir} {
		check(os.Chmod(name, 0o755)) // holders run as the accounts
	}
	h.Settings["listen"], h.Settings["runtime_dir"] = `["127.0.0.1:4433"]`, `""`
	h.Settings["authorized_keys_files"], h.Settings["sshd_policy"] = `["%h/.ssh/authorized_keys"]`, `"ignore"`
	return h
}

// Sessions of root's daemon are those that PAM opens: it refuses accounts, and gives limits and
// variables. The status of a program is known whatever becomes of the daemon.
func TestPAM(t *testing.T) {
	if !insideWith(t, "ip") {
		return
	}
	h := pamHost(t)
	h.Start()
	h.KnowName("127.0.0.1", h.Addr.Port(), h.Path("host_key.pub"))
	qt := func(account string, args ...string) *exec.Cmd {
		return h.To("127.0.0.1", h.Addr.Port(), "connect", []string{"-l", account}, args...)
	}
	notes := func(want ...string) {
		t.Helper()
		awaitState(t, "the notes "+strings.Join(want, ", "), func() bool {
			got, _ := os.ReadFile("/run/notes")
			lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(got)), "\n"), func(s string) bool { return strings.HasSuffix(s, "root") })
			return slices.Equal(lines, want)
		})
	}

	// A command.
	const show = `ulimit -Hn; umask; echo "$FROM_PAM $USER $LD_PRELOAD|$(id -un) $(id -Gn)|$PWD"`
	cmd := qt("ann", show+"; cat; exit 7")
	cmd.Stdin = strings.NewReader("typed")
	out, err := cmd.Output()
	if want := "77\n0027\nyes ann |ann ann team|/home/ann\ntyped"; string(out) != want || exitStatus(t, err) != 7 {
		t.Errorf("a command prints %q (%v), want %q and status 7", out, err, want)
	}
	notes("open_session ann", "close_session ann")
	// It has no other files than those, and ls the one of the directory.
	wantOutput(t, qt("ann", "ls /proc/self/fd"), "0\n1\n2\n3\n")
	if status := exitStatus(t, qt("ann", "kill -9 $$").Run()); status != 137 {
		t.Errorf("status %d of a command that was killed", status)
	}

	// The audit system knows the account, if this process may tell it.
	const loginUID = "/proc/self/loginuid"
	if out, _ := exec.Command("sh", "-c", "echo 77001 >"+loginUID+" && cat "+loginUID).Output(); string(out) == "77001" {
		wantOutput(t, qt("ann", "cat "+loginUID), "77001")
	}

	// PAM refuses, and the client is told.
	wantError(t, qt("barred", "true"), "PAM refuses the session: Authentication failure")
	for account, want := range map[string]string{"barred": "does not get in: PAM refuses the session: Authentication failure", "ann": "gets in"} {
		cmd := exec.Command(filepath.Join(bin, "qtd"), "check", "--config", h.Path("qtd.toml"), account)
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "account "+account+" from 127.0.0.1: "+want) {
			t.Errorf("qtd check prints %s", out)
		}
	}

	// A shell outlives the daemon. What waits for it as root has nothing that the client chose.
	cmd = qt("ann")
	cmd.Env = append(cmd.Env, "LC_TEST=chosen")
	x := rig.Open(t, cmd)
	x.Expect(`\$ `)
	x.Send("PS1='% '; tty; echo $0 $LC_TEST\r")
	x.Expect(`/dev/pts/\d+\r`)
	x.Expect(`-sh chosen\r`)
	x.Expect(`% `)
	x.Send("echo pid=$$ su=$PPID\r")
	ids := x.Expect(`pid=(\d+) su=(\d+)\r`)
	x.Expect(`% `)
	line, err := os.ReadFile("/proc/" + ids[2] + "/cmdline")
	words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	if want := regexp.MustCompile(`^\S+/su -s \S+/qtd -- ann run-login$`); err != nil || !want.MatchString(strings.Join(words, " ")) {
		t.Errorf("su runs as %q, %v", words, err)
	}
	if env, err := os.ReadFile("/proc/" + ids[2] + "/environ"); err != nil || len(env) > 0 {
		t.Errorf("su has the environment %q, %v", env, err)
	}
	var files []string
	entries, _ := os.ReadDir("/proc/" + ids[2] + "/fd")
	for _, e := range entries {
		files = append(files, e.Name())
	}
	if want := []string{"0", "1", "2", "3"}; !slices.Equal(files, want) {
		t.Errorf("su has the descriptors %q, want %q: the last one leads to the holder", files, want)
	}
	status, _ := os.ReadFile("/proc/" + ids[2] + "/status")
	holder := regexp.MustCompile(`\nPPid:\t(\d+)\n`).FindStringSubmatch(string(status))[1]
	status, _ = os.ReadFile("/proc/" + holder + "/status")
	for _, want := range []string{`Uid:(\t77001){4}`, `Gid:(\t77001){4}`, `Groups:\t77001 77003 `, `CapPrm:\t0+`, `CapEff:\t0+`} {
		if !regexp.MustCompile("\n" + want + "\n").Match(status) {
			t.Errorf("the holder has not %s:\n%s", want, status)
		}
	}
	h.Stop(syscall.SIGKILL)
	h.Start()
	x.Send("cat\rtyped\r")
	x.Expect(`typed\r\n`) // by the terminal
	x.Expect(`typed\r\n`) // by cat
	x.Send("\x03")
	x.Expect(`\^C`)
	x.Expect(`% `)
	state := func(pid string) string {
		stat, _ := os.ReadFile("/proc/" + pid + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		return rest[:min(1, len(rest))]
	}
	// While the shell is stopped, su is too: it must take note of the end.
	if fd, err := unix.PidfdOpen(os.Getpid(), 0); err == nil {
		unix.Close(fd)
		x.Send("kill -STOP $$; exit 5\r")
		awaitState(t, "su to stop", func() bool { return state(ids[1]) == "T" && state(ids[2]) == "T" })
		var pid int
		fmt.Sscan(ids[1], &pid)
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	} else { // the kernel is too old
		x.Send("exit 5\r")
	}
	if status := x.Exit(); status != 5 {
		t.Errorf("status %d of a shell after a restart of the daemon, want 5", status)
	}
	awaitState(t, "the end of su", func() bool { return state(ids[2]) == "" })

	// The daemon's file may be removed while it runs.
	h.Stop(syscall.SIGTERM)
	whole := h.Bin
	h.Bin = "/run"
	if out, err := exec.Command("cp", filepath.Join(whole, "qtd"), h.Bin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h.Start()
	if err := os.Remove("/run/qtd"); err != nil {
		t.Fatal(err)
	}
	h.Bin = whole
	wantOutput(t, qt("ann", "echo $FROM_PAM; ls /proc/self/fd"), "yes\n0\n1\n2\n3\n")

	// Where PAM fails, no session starts; the log and the doctor say why.
	if err := os.WriteFile("/etc/pam.d/su", []byte("auth required pam_deny.so\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.Stop(syscall.SIGTERM)
	h.Start()
	const why = `PAM cannot open sessions, so none start: \S+/su does not work`
	wantError(t, qt("ann", "true"), why)
	want := regexp.MustCompile(why)
	awaitState(t, "a line in the log", func() bool { return want.MatchString(h.Log.String()) })
	out, err = qtdDoctor(h)().CombinedOutput()
	if err == nil || !regexp.MustCompile("fail  login     "+why).Match(out) {
		t.Errorf("the doctor says %v:\n%s", err, out)
	}
	check := exec.Command(filepath.Join(bin, "qtd"), "check", "--config", h.Path("qtd.toml"), "ann")
	if out, err := check.CombinedOutput(); err == nil || !regexp.MustCompile("does not get in: "+why).Match(out) {
		t.Errorf("qtd check says %v:\n%s", err, out)
	}

	// Without a su that PAM has rules for, sessions start without PAM.
	h.Stop(syscall.SIGTERM)
	withoutSu(t)
	h.Start()
	wantOutput(t, qt("ann", `echo direct$FROM_PAM`), "direct\n")
}

// withoutSu hides su of util-linux and PAM's rules for it, inside a test that has its own mounts and /etc.
func withoutSu(t *testing.T) {
	t.Helper()
	su, err := exec.LookPath("su")
	if err == nil {
		os.Remove("/etc/pam.conf")
		err = os.Remove("/etc/pam.d/su")
	}
	if err == nil {
		err = os.WriteFile("/etc/other-su", []byte("#!/bin/sh\nexit 1\n"), 0o755)
	}
	if err == nil {
		err = unix.Mount("/etc/other-su", su, "", unix.MS_BIND, "")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitState blocks until something is so.
func awaitState(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for start := time.Now(); !reached(); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > rig.Patience {
			t.Fatalf("waited for %s", what)
		}
	}
}
