package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/rig"
)

// inside runs a test again in a process that has a network and mounts of its own, so that it
// can have its own accounts and an sshd with its own configuration. It reports whether this is
// that process.
func inside(t *testing.T) bool { return insideWith(t, sshdFile, "ssh", "ssh-keygen", "ip") }

// insideWith is inside for a test that needs these programs.
func insideWith(t *testing.T, programs ...string) bool {
	t.Helper()
	if isInside {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("accounts and mounts of a test need root")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), toEnter(insideVariable, bin))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("namespaces are not permitted: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// A policyCase is an account, and what sshd's configuration has for it.
type policyCase struct {
	name    string                 // of the account
	config  string                 // lines of a Match block for it
	address string                 // of client and server; 127.0.0.1 if empty
	keys    string                 // its authorized_keys, with KEY for the key; "KEY" if empty
	file    string                 // where these are; .ssh/authorized_keys if empty
	root    bool                   // its user id is 0
	groups  string                 // besides the one with its name
	shell   string                 // /bin/sh if empty
	shadow  string                 // what follows its name in /etc/shadow
	cert    func(*ssh.Certificate) // what is in the certificate that clients have
	others  int                    // how many other keys clients have before the one
	change  func(home string) error
	want    string // what the command prints; empty if there is none
	bySSH   string // the same by ssh, if that differs

	forwards      string // what is forwarded, by the letters of probes; see forwardCases
	forwardsBySSH string // the same by ssh, if that differs

	files string // rw if files are moved both ways, r if they are only read, else none are
}

// command is what each client runs.
const command = "echo ran"

var policyCases = slices.Concat(accountCases, keyCases, certificateCases, fileCases, forwardCases)

// accountCases are about accounts and what sshd's configuration has for them.
var accountCases = []policyCase{
	{name: "plain", want: "ran\n"},
	{name: "allowed", config: "AllowUsers other allowed", want: "ran\n"},
	{name: "unlisted", config: "AllowUsers other"},
	{name: "denied", config: "DenyUsers d*d"},
	{name: "denied-first", config: "AllowUsers denied-first\nDenyUsers denied-first"},
	{name: "near", config: "AllowUsers near@127.0.0.0/8", want: "ran\n"},
	{name: "far", config: "AllowUsers far@10.9.0.0/16"},
	{name: "far-in", config: "AllowUsers far-in@10.9.0.0/16", address: "10.9.0.1", want: "ran\n"},
	{name: "far-out", config: "AllowUsers far-out@10.9.0.0/16,!10.9.0.1", address: "10.9.0.1"},
	{name: "far-denied", config: "DenyUsers *@10.9.*", address: "10.9.0.1"},
	{name: "six", config: "AllowUsers six@::1", address: "::1", want: "ran\n"},
	{name: "group", config: "AllowGroups team", groups: "team", want: "ran\n"},
	{name: "no-group", config: "AllowGroups team"},
	{name: "bad-group", config: "AllowGroups team\nDenyGroups ba?", groups: "team bad"},
	{name: "own-group", config: "DenyGroups own-group"},
	{name: "match-group", config: "", groups: "by-group", want: "by group\n"},
	{name: "root-yes", config: "PermitRootLogin yes", root: true, want: "ran\n"},
	{name: "root-keys", config: "PermitRootLogin prohibit-password", root: true, want: "ran\n"},
	{name: "root-no", config: "PermitRootLogin no", root: true},
	{name: "root-free", config: "PermitRootLogin forced-commands-only", root: true},
	{name: "root-forced", config: "PermitRootLogin forced-commands-only", root: true, keys: `command="echo forced" KEY`, want: "forced\n"},
	{name: "root-config", config: "PermitRootLogin forced-commands-only\nForceCommand echo forced", root: true},
	{name: "no-keys", config: "PubkeyAuthentication no"},
	{name: "algorithms", config: "PubkeyAcceptedAlgorithms ecdsa-sha2-*"},
	{name: "two-factors", config: "AuthenticationMethods publickey,password"},
	{name: "one-factor", config: "AuthenticationMethods publickey,password publickey", want: "ran\n"},
	{name: "central", config: "AuthorizedKeysFile /etc/ssh/keys/%u", file: "/etc/ssh/keys/central", want: "ran\n"},
	{name: "not-central", config: "AuthorizedKeysFile /etc/ssh/keys/%u"},
	{name: "by-number", config: "AuthorizedKeysFile /etc/ssh/keys/%U-%%", file: "/etc/ssh/keys/UID-%", want: "ran\n"},
	{name: "second-file", file: ".ssh/authorized_keys2", want: "ran\n"},
	{name: "no-file", config: "AuthorizedKeysFile none"},
	{name: "revoked", config: "RevokedKeys /etc/ssh/revoked"},
	{name: "revoked-krl", config: "RevokedKeys /etc/ssh/revoked.krl"},
	{name: "not-revoked", config: "RevokedKeys /etc/ssh/revoked.other", want: "ran\n"},
	{name: "unknown-revoked", config: "RevokedKeys /etc/ssh/none"},
	{name: "forced", config: "ForceCommand echo forced: $SSH_ORIGINAL_COMMAND", want: "forced: echo ran\n"},
	{name: "forced-twice", config: "ForceCommand echo config", keys: `command="echo key" KEY`, want: "config\n"},
	{name: "forced-key", keys: `command="echo key" KEY`, want: "key\n"},
	{name: "sftp", config: "ForceCommand internal-sftp", bySSH: "This service allows sftp connections only.\n"},
	{name: "chroot", config: "ChrootDirectory /home"},
	{name: "sessions", config: "MaxSessions 0"},
	{name: "no-shell", shell: "/none"},
	{name: "plain-shell", shell: "/etc/passwd"},
	{name: "nologin", shell: "/usr/sbin/nologin", want: "This account is currently not available.\n"},
	{name: "locked", shadow: "!$y$x:19000:0:99999:7:::"},
	{name: "starred", shadow: "*:19000:0:99999:7:::", want: "ran\n"},
	{name: "expired", shadow: "*:19000:0:99999:7::1:"},
	{name: "match-far", address: "10.9.0.1", want: "from far\n"},
	{name: "match-near", want: "ran\n"},
	{name: "match-port", want: "by port\n"},
	{name: "no-terminal", config: "PermitTTY no", want: "ran\n"},
}

// matches are Match blocks that are not for one account.
const matches = `
Match Group by-group
	ForceCommand echo by group
Match User match-* Address 10.9.0.0/16
	ForceCommand echo from far
Match User match-port LocalPort 22
	ForceCommand echo by port
`

// ownEtc gives this process an /etc of its own: a copy, because a file that is mounted over another
// one disappears when that one is replaced.
func ownEtc(t *testing.T) {
	t.Helper()
	etc := t.TempDir()
	if err := os.Chmod(etc, 0o755); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", "/etc/.", etc).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := unix.Mount(etc, "/etc", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount("/etc", unix.MNT_DETACH) })
}

// machine gives this process accounts and an sshd of its own, which know the key of a host's user.
func machine(t *testing.T, h *rig.Host) {
	t.Helper()
	prepareMachine(t, h)
	startMachineSSHD(t)
}

// prepareMachine does so without the sshd.
func prepareMachine(t *testing.T, h *rig.Host) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rig.IP(t, "link", "set", "lo", "up")
	rig.IP(t, "addr", "add", "10.9.0.1/32", "dev", "lo")
	ownEtc(t)
	check(unix.Mount("tmpfs", "/home", "tmpfs", 0, "mode=755"))
	// The modes are set again: the umask may take rights away.
	var mkdir func(dir string)
	mkdir = func(dir string) {
		t.Helper()
		if _, err := os.Stat(dir); err == nil {
			return
		}
		mkdir(filepath.Dir(dir))
		check(os.Mkdir(dir, 0o755))
		check(os.Chmod(dir, 0o755))
	}
	mkdir("/run/sshd")
	write := func(file, content string, mode os.FileMode) {
		t.Helper()
		mkdir(filepath.Dir(file))
		check(os.WriteFile(file, []byte(content), mode))
		check(os.Chmod(file, mode))
	}
	text := func(key ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) }
	line, other, ca := text(h.Key), text(h.NewKey("other")), text(h.NewKey("ca"))
	config := "UsePAM no\nUseDNS no\nPermitRootLogin no\nMaxStartups 1000\nHostKey /etc/ssh/host_key\nPort 22\nListenAddress 0.0.0.0\nListenAddress ::\nSubsystem sftp internal-sftp\n" + matches
	passwd := "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\nsshd:x:102:65534::/run/sshd:/usr/sbin/nologin\n"
	shadow, groups, members := "root:*:1::::::\n", "root:x:0:\nnogroup:x:65534:\n", map[string][]string{}
	check(os.RemoveAll("/etc/ssh"))
	for i, c := range policyCases {
		uid, gid := 70000+i, 70000+i
		if c.root {
			uid, gid = 0, 0
		} else {
			groups += fmt.Sprintf("%s:x:%d:\n", c.name, gid)
		}
		for group := range strings.FieldsSeq(c.groups) {
			members[group] = append(members[group], c.name)
		}
		or := func(value, usual string) string {
			if value == "" {
				return usual
			}
			return value
		}
		passwd += fmt.Sprintf("%s:x:%d:%d::/home/%s:%s\n", c.name, uid, gid, c.name, or(c.shell, "/bin/sh"))
		shadow += c.name + ":" + or(c.shadow, "*:19000:0:99999:7:::") + "\n"
		if c.config != "" {
			config += "Match User " + c.name + "\n" + c.config + "\n"
		}
		home := filepath.Join("/home", c.name)
		mkdir(home)
		file := strings.ReplaceAll(or(c.file, ".ssh/authorized_keys"), "UID", fmt.Sprint(uid))
		if !filepath.IsAbs(file) {
			file = filepath.Join(home, file)
		}
		write(file, strings.NewReplacer("KEY", line, "CA", ca).Replace(or(c.keys, "KEY"))+"\n", 0o644)
		if c.change != nil {
			check(filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
				return errors.Join(err, os.Chown(path, uid, gid))
			}))
			check(c.change(home))
		}
	}
	for i, group := range []string{"team", "bad", "by-group"} {
		groups += fmt.Sprintf("%s:x:%d:%s\n", group, 60000+i, strings.Join(members[group], ","))
	}
	write("/etc/passwd", passwd, 0o644)
	write("/etc/group", groups, 0o644)
	write("/etc/shadow", shadow, 0o600)
	write("/etc/ssh/revoked", "# lost\n"+line+"\n", 0o600)
	write("/etc/ssh/ca.pub", ca+"\n", 0o644)
	write("/etc/ssh/names", "# names\nx\ncommand=\"echo named\" ops\n", 0o644)
	check(os.Symlink("/bin/sh", "/etc/odd-sh"))
	// Programs are run by other processes: none of this one may have them open for writing.
	for name, script := range map[string]string{
		"print":      `test "$(id -un)" = nobody && echo "command=\"echo printed for $1\" ` + line + `"`,
		"by-key":     `test "$1 $3" = "ssh-ed25519 ` + ssh.FingerprintSHA256(h.Key) + `" && echo "$1 $2"`,
		"principals": `test "$(id -un)" = nobody && echo "command=\"echo $*\" $1"`,
		"fail":       `echo "` + line + `"; exit 1`,
		"open":       `echo "` + line + `"`,
	} {
		syscall.ForkLock.RLock()
		write("/etc/ssh/"+name, "#!/bin/sh\n"+script+"\n", 0o755)
		syscall.ForkLock.RUnlock()
	}
	check(os.Chmod("/etc/ssh/open", 0o777))
	write("/etc/ssh/revoked.other", other+"\n", 0o600)
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	run("ssh-keygen", "-q", "-k", "-f", "/etc/ssh/revoked.krl", "/etc/ssh/revoked")
	run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/ssh/host_key")
	// OpenSSH 9.8 and later keep clients away that fail often.
	write("/etc/ssh/sshd_config", "PerSourcePenalties no\n"+config, 0o600)
	if exec.Command(sshdFile, "-t").Run() != nil {
		write("/etc/ssh/sshd_config", config, 0o600)
	}
}

// startMachineSSHD starts the sshd with options, and returns a function that ends it.
func startMachineSSHD(t *testing.T, options ...string) (stop func()) {
	t.Helper()
	var log rig.Output
	cmd := exec.Command(sshdFile, append([]string{"-D", "-e"}, options...)...)
	cmd.Stderr = &log
	cmd.WaitDelay = time.Second // logins whose client is gone keep it open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("log of sshd:\n%s", log.String())
		}
	})
	log.Await(t, 0, regexp.MustCompile("listening on 0.0.0.0 port 22"))
	return stop
}

// startFollowing starts a daemon of root that follows the sshd of the test's machine, for all of its accounts.
func startFollowing(t *testing.T, h *rig.Host) {
	t.Helper()
	for _, name := range []string{bin, filepath.Join(bin, "qt"), filepath.Join(bin, "qtd"), h.Dir} {
		if err := os.Chmod(name, 0o755); err != nil { // holders run as the accounts
			t.Fatal(err)
		}
	}
	h.Settings["listen"], h.Settings["sshd_policy"], h.Settings["runtime_dir"] = `[":0"]`, `"follow"`, `""`
	h.Settings["authorized_keys_files"] = `["%h/.ssh/authorized_keys"]`
	h.Start()
	h.KnowName("127.0.0.1", h.Addr.Port(), h.Path("host_key.pub"))
}

// What the command line of the sshd that listens says holds for logins, and what its files say from the
// moment on when they change.
func TestSSHDOptions(t *testing.T) {
	skipUnderRace(t)
	if !inside(t) {
		return
	}
	ownTemporary(t)
	h := newHost(t)
	prepareMachine(t, h)
	for _, name := range []string{bin, filepath.Join(bin, "qt"), filepath.Join(bin, "qtd"), h.Dir} {
		if err := os.Chmod(name, 0o755); err != nil { // holders run as the accounts
			t.Fatal(err)
		}
	}
	h.Settings["sshd_policy"], h.Settings["runtime_dir"] = `"follow"`, `""`
	h.Settings["authorized_keys_files"] = `["%h/.ssh/authorized_keys"]`
	h.Start()
	h.KnowName("127.0.0.1", h.Addr.Port(), h.Path("host_key.pub"))
	says := func(account, text string) {
		t.Helper()
		out, _ := exec.Command(filepath.Join(bin, "qtd"), "check", "--config", h.Path("qtd.toml"), account).CombinedOutput()
		if !strings.Contains(string(out), text) {
			t.Errorf("qtd check %s lacks %q:\n%s", account, text, out)
		}
	}
	logins := func(bySSH bool, account, want string) {
		t.Helper()
		cmd := h.To("127.0.0.1", h.Addr.Port(), "connect", []string{"-l", account}, command)
		if want == "" {
			wantError(t, cmd, "permission denied")
		} else {
			wantOutput(t, cmd, want)
		}
		if !bySSH {
			return
		}
		cmd = exec.Command("ssh", "-F", "none", "-T", "-n", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR",
			"-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-i", h.Path("id"), "-l", account, "127.0.0.1", command)
		cmd.Env = h.Env()
		if out, _ := cmd.Output(); string(out) != want {
			t.Errorf("%s by ssh: %q, want %q", account, out, want)
		}
	}
	write := func(file, content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	stop := startMachineSSHD(t, "-o", "AllowUsers=plain second-line", "-oForceCommand=echo by option")
	logins(true, "plain", "by option\n")
	logins(true, "match-near", "")
	says("plain", "/usr/sbin/sshd -o AllowUsers=plain second-line -o ForceCommand=echo by option  process ")
	stop()

	// Other files, at once.
	config, err := os.ReadFile("/etc/ssh/sshd_config")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("/etc/ssh/more", 0o755); err != nil {
		t.Fatal(err)
	}
	write("/etc/ssh/other_config", "Include more/*.conf\n"+string(config))
	stop = startMachineSSHD(t, "-f", "/etc/ssh/other_config")
	logins(true, "plain", "ran\n")
	write("/etc/ssh/more/a.conf", "DenyUsers plain\n")
	logins(false, "plain", "")
	write("/etc/ssh/more/a.conf", "DenyUsers other\n")
	logins(false, "plain", "ran\n")
	says("plain", "sshd -f /etc/ssh/other_config")
	stop()

	// What cannot be told lets none in, and is said.
	stop = startMachineSSHD(t, "-o", "ForceCommand=echo 1", "-e")
	logins(false, "plain", "")
	says("plain", "-o ForceCommand=echo 1: what follows may be part of it or not")
	stop()

	// Of several that listen, the one at the usual port counts. Without one there, none can be told from the others.
	stop = startMachineSSHD(t, "-o", "ForceCommand=echo by option")
	stopSecond := startMachineSSHD(t, "-p", "2201", "-o", "ForceCommand=echo by the second")
	stopThird := startMachineSSHD(t, "-p", "2202")
	logins(true, "plain", "by option\n")
	stop()
	logins(false, "plain", "")
	says("plain", "listen with other options, and port 22 does not tell which of them is this machine's")
	stopThird()
	logins(false, "plain", "by the second\n")
	stopSecond()

	// No sshd runs: its unit's file counts.
	write("/etc/default/ssh", "# options\nSSHD_OPTS=\"-o DenyUsers=plain\"\n")
	logins(false, "plain", "")
	says("plain", "SSHD_OPTS in /etc/default/ssh")
	write("/etc/default/ssh", "SSHD_OPTS=\n")
	logins(false, "plain", "ran\n")

	// Rules that keep clients out are told of.
	says = func(_, text string) {
		t.Helper()
		if out, err := qtdDoctor(h)().CombinedOutput(); err == nil || !strings.Contains(string(out), text) {
			t.Errorf("the doctor says %v, without %q:\n%s", err, text, out)
		}
	}
	rig.IP(t, "rule", "add", "pref", "100", "lookup", "local")
	rig.IP(t, "rule", "del", "pref", "0", "lookup", "local")
	rule := []string{"pref", "10", "ipproto", "tcp", "dport", fmt.Sprint(h.Addr.Port()), "prohibit"}
	rig.IP(t, append([]string{"rule", "add"}, rule...)...)
	says("", "fail  ports     a firewall or a rule of this machine keeps TCP from the daemon: ")
	rig.IP(t, append([]string{"rule", "del"}, rule...)...)
	write("/etc/nologin", "closed for repair\n")
	says("", "fail  login     nologin(5) lets only root in: closed for repair")
	if err := os.Remove("/etc/nologin"); err != nil {
		t.Fatal(err)
	}
	if out, err := qtdDoctor(h)().CombinedOutput(); err != nil {
		t.Errorf("later, the doctor says %v:\n%s", err, out)
	}

	// Keys are where sshd's files say. A setting that says otherwise is not silently without effect.
	settings := h.Read("qtd.toml")
	h.Write("own.toml", strings.Replace(settings, `["%h/.ssh/authorized_keys"]`, `["/etc/keys/%u"]`, 1))
	for _, args := range [][]string{{"serve"}, {"serve", "--test"}, {"check"}} {
		cmd := exec.Command(filepath.Join(bin, "qtd"), append(args, "--config", h.Path("own.toml"))...)
		wantFailure(t, cmd, `own.toml:[0-9]+:25: authorized_keys_files has no effect: sshd's AuthorizedKeysFile takes its place`)
	}
}

// Root's daemon lets in whom the sshd of the machine lets in, to the same command.
func TestSSHDPolicy(t *testing.T) {
	skipUnderRace(t)
	if !inside(t) {
		return
	}
	ownTemporary(t)
	h := newHost(t)
	machine(t, h)
	h.NewKey("third")
	private, err := os.ReadFile(h.Path("ca"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	id, err := os.ReadFile(h.Path("id"))
	if err != nil {
		t.Fatal(err)
	}
	startFollowing(t, h)
	for _, address := range []string{"10.9.0.1", "::1"} {
		h.KnowName(address, h.Addr.Port(), h.Path("host_key.pub"))
	}
	type client struct {
		cmd       *exec.Cmd
		out, errs bytes.Buffer
	}
	var clients []*client // by ssh and by qt, for each case
	for _, c := range policyCases {
		address := c.address
		if address == "" {
			address = "127.0.0.1"
		}
		login := []string{"-l", c.name}
		for _, other := range []string{"other", "third"}[:c.others] {
			login = append(login, "-i", h.Path(other))
		}
		if file := h.Path("id"); c.cert != nil {
			login = append(login, "-i", writeCertificate(t, h.Dir, &c, id, h.Key, authority))
		} else {
			login = append(login, "-i", file)
		}
		bySSH := exec.Command("ssh", slices.Concat([]string{"-F", "none", "-T", "-n", "-o", "BatchMode=yes",
			"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
			"-o", "IdentitiesOnly=yes", "-o", "KexAlgorithms=curve25519-sha256"}, login, []string{address, command})...)
		bySSH.Env = h.Env()
		byQT := h.To(address, h.Addr.Port(), "connect", login, command)
		clients = append(clients, &client{cmd: bySSH}, &client{cmd: byQT})
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8) // a denial waits longer than it works
	for _, c := range clients {
		c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.errs
		slots <- struct{}{}
		wg.Go(func() {
			c.cmd.Run() // what it prints is compared
			<-slots
		})
	}
	wg.Wait()
	for i, c := range policyCases {
		s, q := clients[2*i], clients[2*i+1]
		if s.out.String() != c.want+c.bySSH || q.out.String() != c.want {
			t.Errorf("%s: by ssh %q (%s), by qt %q (%s); want %q", c.name, &s.out, &s.errs, &q.out, &q.errs, c.want)
		}
	}
	qt := func(account, address string, args ...string) *exec.Cmd {
		return h.To(address, h.Addr.Port(), "connect", []string{"-l", account}, args...)
	}
	wantError(t, h.To("127.0.0.1", h.Addr.Port(), "connect", []string{"-t", "-l", "no-terminal"}, command), "may not have a terminal")

	// A token of an account's own process gets in whom a key would.
	for _, c := range []struct{ name, want string }{{"plain", "ran\n"}, {"no-keys", "ran\n"}, {"forced", "forced: echo ran\n"}, {"denied", ""}, {"chroot", ""}, {"root-free", ""}} {
		cmd := exec.Command(filepath.Join(bin, "qt"), "connect", "localhost", command)
		a, err := user.Lookup(c.name)
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(a.Uid)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		cmd.Env = []string{"HOME=/home/" + c.name, "PATH=/usr/bin:/bin", "USER=" + c.name}
		cmd.Dir = "/"
		if c.want == "" {
			wantError(t, cmd, "permission denied")
		} else {
			wantOutput(t, cmd, c.want)
		}
	}

	checkAccess(t, h)

	// An sshd that was not started since the last boot lacks a directory.
	if err := os.Remove("/run/sshd"); err != nil {
		t.Fatal(err)
	}
	wantOutput(t, qt("plain", "10.9.0.1", command), "ran\n")

	if err := os.WriteFile("/run/nologin", []byte("closed for repair\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	wantError(t, qt("plain", "127.0.0.1", command), "closed for repair")
	wantOutput(t, qt("root-yes", "127.0.0.1", command), "ran\n")
	if err := os.Remove("/run/nologin"); err != nil {
		t.Fatal(err)
	}

	// Nobody gets in while sshd's configuration is not known.
	if err := os.WriteFile("/etc/ssh/sshd_config", []byte("Nonsense yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reason := regexp.MustCompile(`sshd's configuration is not known: .*Nonsense.* sshd_policy`)
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		wantError(t, qt("plain", "::1", command), "permission denied")
		if reason.MatchString(h.Log.String()) {
			break
		} else if t.Failed() || time.Since(start) > 2*rig.Patience { // the log has not every line at once
			t.Fatal("the log does not say why nobody gets in")
		}
	}
}

// checkAccess checks what qtd check says of logins, with the settings of the daemon and with others that
// do not follow sshd.
func checkAccess(t *testing.T, h *rig.Host) {
	t.Helper()
	h.Write("own.toml", `sshd_policy = "ignore"
allow_users = ["plain", "cert*", "trusted", "far-*@10.9.0.0/16", "bad-group", "program*", "first-try", "open-*", "revoked"]
trusted_user_ca_keys = "/etc/ssh/ca.pub"
`)
	own, followed := "own.toml", "qtd.toml"
	for _, c := range []struct {
		settings, account, from, key string
		says                         []string
		refused                      bool
	}{
		{followed, "forced-key", "127.0.0.1", "id.pub", []string{"authorizedkeysfile ", "maxauthtries ", `/home/forced-key/.ssh/authorized_keys:1, runs only "echo key"`}, false},
		{followed, "far-in", "10.9.0.1", "", []string{"allowusers ", "far-in@10.9.0.0/16", "/etc/ssh/sshd_config:", "account far-in from 10.9.0.1: gets in"}, false},
		{followed, "far-in", "127.0.0.1", "", []string{"does not get in: refused as by sshd: AllowUsers"}, true},
		{followed, "expired", "127.0.0.1", "id.pub", []string{"expired"}, true},
		{followed, "second-line", "127.0.0.1", "id.pub", []string{"authorized_keys:2"}, false},
		{followed, "unknown-option", "127.0.0.1", "id.pub", []string{"option frobnicate: is not supported"}, true},
		{followed, "cert", "127.0.0.1", "id-cert-cert.pub", []string{"cert-v01@openssh.com SHA256:", "authorized_keys:1"}, false},
		{followed, "cert-expired", "127.0.0.1", "id-cert-expired-cert.pub", []string{"cert has expired"}, true},
		{own, "plain", "127.0.0.1", "id.pub", []string{"allow_users ", "own.toml:2", "gets in by /home/plain/"}, false},
		{own, "denied", "127.0.0.1", "id.pub", []string{"refused by the setting allow_users"}, true},
		{own, "far-in", "10.9.0.1", "id.pub", []string{"gets in by /home/far-in/"}, false},
		{own, "far-in", "127.0.0.1", "id.pub", []string{"refused by the setting allow_users"}, true},
		{own, "trusted", "127.0.0.1", "id-trusted-cert.pub", []string{"gets in by /etc/ssh/ca.pub"}, false},
	} {
		args := []string{"check", "--config", h.Path(c.settings), "--from", c.from}
		if c.key != "" {
			args = append(args, "--key", h.Path(c.key))
		}
		out, err := exec.Command(filepath.Join(bin, "qtd"), append(args, c.account)...).CombinedOutput()
		for _, text := range c.says {
			if !strings.Contains(string(out), text) {
				t.Errorf("qtd check %s from %s with %s lacks %q:\n%s", c.account, c.from, c.settings, text, out)
			}
		}
		if (err != nil) != c.refused {
			t.Errorf("qtd check %s from %s with %s: %v:\n%s", c.account, c.from, c.settings, err, out)
		}
	}
}
