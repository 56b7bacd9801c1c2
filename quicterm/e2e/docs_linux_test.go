package e2e

import (
	"errors"
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
	"github.com/quicterm/quicterm/configs"
)

// A block of a page is code between two fences. Its words say the language and, for commands,
// where they are typed: at the reader's machine, unless a further word names another place.
type block struct {
	page  string
	words string
	lines []string // with continued lines joined
}

// notRun are the places whose commands no test types, and why. That qt and qtd have the commands
// and flags is tested all the same.
var notRun = map[string]string{
	"checkout": "it builds the programs, which this test runs, and installs them on the machine",
	"systemd":  "there is no service manager in the test's namespaces",
	"firewall": "the programs of several systems, of which one machine has at most one",
	"phone":    "it needs Android",
}

// documents returns the names of the pages, from the root of the module.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"README.md", "CONTRIBUTING.md"}
	for _, p := range pages {
		names = append(names, "docs/"+filepath.Base(p))
	}
	return names
}

var fenced = regexp.MustCompile("(?ms)^```([a-z].*?)$\n(.*?)^```$")

// readBlocks returns the blocks of a page.
func readBlocks(t *testing.T, page string) (text string, blocks []block) {
	t.Helper()
	content, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fenced.FindAllStringSubmatch(string(content), -1) {
		code := strings.ReplaceAll(strings.TrimSpace(m[2]), "\\\n", " ")
		blocks = append(blocks, block{page, m[1], strings.Split(code, "\n")})
	}
	return string(content), blocks
}

// The commands of the pages work as they are written, each page on machines of its own.
func TestDocs(t *testing.T) {
	if raceEnabled {
		t.Skip("other tests do all of this with the race detector")
	}
	t.Parallel()
	for _, page := range documents(t) {
		_, blocks := readBlocks(t, page)
		blocks = slices.DeleteFunc(blocks, func(b block) bool { return b.place() != "" && b.place() != "server" || !b.shell() })
		if len(blocks) == 0 {
			continue
		}
		t.Run(page, func(t *testing.T) {
			if !isolated(t) {
				return
			}
			m := newDocMachine(t)
			if !slices.ContainsFunc(blocks, func(b block) bool { return strings.Contains(strings.Join(b.lines, "\n"), "qt install ") }) {
				m.install(t)
			}
			for _, b := range blocks {
				for _, line := range b.lines {
					m.run(t, b.place(), line)
				}
			}
		})
	}
}

func (b block) shell() bool { return strings.HasPrefix(b.words, "sh") }

// place returns where the commands are typed.
func (b block) place() string {
	_, place, _ := strings.Cut(b.words, " ")
	return place
}

// isolated is inside, with process numbers of its own as well: all that a page starts ends with it.
func isolated(t *testing.T) bool {
	if isInside {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("accounts and mounts of a test need root")
	}
	for _, program := range []string{sshdFile, "ssh", "scp", "rsync", "ssh-keygen", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), toEnter(insideVariable, bin))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("namespaces are not permitted: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// A docMachine is the reader's machine and the server in one: an account with a key that sshd at the
// name server accepts, and a root with sudo.
type docMachine struct {
	home string
	env  []string
}

const docAccount = "anna"

// newDocMachine gives this process such a machine.
func newDocMachine(t *testing.T) *docMachine {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ownTemporary(t)
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Skipf("process numbers of its own are not permitted: %v", err)
	}
	for _, dir := range []string{"/home", "/var/lib", "/var/log", "/usr/local/bin"} {
		check(unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	}
	for _, dir := range []string{"/run", "/home", "/usr/local/bin", bin} {
		check(os.Chmod(dir, 0o755))
	}
	rig.IP(t, "link", "set", "lo", "up")
	ownEtc(t)
	const uid = 70_000
	m := &docMachine{home: "/home/" + docAccount}
	m.env = []string{
		"HOME=" + m.home, "USER=" + docAccount, "LOGNAME=" + docAccount, "SHELL=/bin/sh", "TERM=xterm",
		"PATH=" + m.home + "/tools:" + bin + ":/usr/sbin:/usr/bin:/sbin:/bin",
	}
	write := func(file, content string, mode os.FileMode) {
		t.Helper()
		check(os.MkdirAll(filepath.Dir(file), 0o755))
		check(os.WriteFile(file, []byte(content), mode))
	}
	write("/etc/passwd", fmt.Sprintf("root:x:0:0::/root:/bin/sh\nsshd:x:102:65534::/run/sshd:/usr/sbin/nologin\n%s:x:%d:%d::%s:/bin/sh\n", docAccount, uid, uid, m.home), 0o644)
	write("/etc/group", fmt.Sprintf("root:x:0:\nnogroup:x:65534:\n%s:x:%d:\n", docAccount, uid), 0o644)
	write("/etc/shadow", "root:*:1::::::\n"+docAccount+":*:19000:0:99999:7:::\n", 0o600)
	write("/etc/hosts", "127.0.0.1 localhost server\n", 0o644)
	check(os.RemoveAll("/etc/ssh"))
	check(os.MkdirAll("/run/sshd", 0o755))
	check(os.MkdirAll("/etc/ssh", 0o755))
	check(os.MkdirAll(m.home+"/.ssh", 0o755))
	write(m.home+"/src/notes", "remember the milk\n", 0o644)
	write(m.home+"/tools/sudo", "#!/bin/sh\nexec \"$@\"\n", 0o755)
	write("/usr/local/bin/agent", "#!/bin/sh\nsleep 0.2\nstty -icanon\nprintf 'Change it? [y/n] '\nhead -c 1\n", 0o755)
	for _, key := range []string{"/etc/ssh/ssh_host_ed25519_key", m.home + "/.ssh/id_ed25519"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	key, err := os.ReadFile(m.home + "/.ssh/id_ed25519.pub")
	check(err)
	write(m.home+"/.ssh/authorized_keys", string(key), 0o644)
	host, err := os.ReadFile("/etc/ssh/ssh_host_ed25519_key.pub")
	check(err)
	parsed, _, _, _, err := ssh.ParseAuthorizedKey(host)
	check(err)
	write(m.home+"/.ssh/known_hosts", "server "+string(ssh.MarshalAuthorizedKey(parsed)), 0o644)
	write("/etc/ssh/sshd_config", "UsePAM no\nUseDNS no\nListenAddress 127.0.0.1\nSubsystem sftp internal-sftp\n", 0o644)
	if out, err := exec.Command("chown", "-R", docAccount+":", m.home).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var log rig.Output
	sshd := exec.Command(sshdFile, "-D", "-e")
	sshd.Stderr = &log
	check(sshd.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of sshd:\n%s", log.String())
		}
	})
	log.Await(t, 0, regexp.MustCompile("listening on 127.0.0.1 port 22"))
	return m
}

// install puts qtd where qt install does: a page that does not tell of that follows the one that does.
func (m *docMachine) install(t *testing.T) {
	dir := m.home + "/.local/bin"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(bin, "qtd"), dir+"/qtd"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("chown", "-R", docAccount+":", m.home+"/.local").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A leave is how a command ends that does not end by itself.
type leave struct {
	command, shows *regexp.Regexp
	keys           string
}

// leaves says what ends commands that do not end by themselves, when they show a match: keys, or
// nothing for one that is to go on.
var leaves = []leave{
	{regexp.MustCompile(`^(sudo )?qtd serve`), regexp.MustCompile(`listening address=`), ""},
	{regexp.MustCompile(`^qt (watch|record) `), regexp.MustCompile(`\$|recording session`), "\x03"},
	{regexp.MustCompile(`^qt events `), regexp.MustCompile(`"event":"exited"`), "\x03"},
	{regexp.MustCompile(`^qt forward `), regexp.MustCompile(`until Ctrl-C`), "\x03"},
	{regexp.MustCompile(`^qt (connect|attach)`), regexp.MustCompile(`\$ `), "~."},
	{regexp.MustCompile(`^ssh `), regexp.MustCompile(`\$ `), "exit\r"},
}

// run types a line at a place, and waits until it has ended well.
func (m *docMachine) run(t *testing.T, place, line string) {
	t.Helper()
	start := time.Now()
	shell := []string{"sh", "-c", line}
	leave := slices.IndexFunc(leaves, func(l leave) bool { return l.command.MatchString(line) })
	if leave >= 0 {
		shell[2] = "exec " + line // no shell gets the keys that end it
	}
	if place == "" {
		shell = append([]string{"setpriv", "--reuid", docAccount, "--regid", docAccount, "--clear-groups"}, shell...)
	}
	cmd := exec.Command(shell[0], shell[1:]...)
	cmd.Env, cmd.Dir = m.env, m.home
	x := docTerminal{rig.Open(t, cmd)}
	if leave >= 0 {
		if ended := x.awaitOrEnd(leaves[leave].shows); !ended && leaves[leave].keys == "" {
			return
		}
		x.TTY.WriteString(leaves[leave].keys)
	}
	select {
	case <-x.Closed(): // qt install copies programs, which takes time on a busy machine
	case <-time.After(3 * rig.Patience):
	}
	status := x.Exit()
	if status == 1 && regexp.MustCompile(`qtd? doctor\b`).MatchString(line) {
		status = 0 // it has found something, which depends on the machine
	}
	if status != 0 {
		t.Fatalf("%s: exit status %d\n%s", line, status, x.Out)
	}
	t.Logf("%5.2f s: %s", time.Since(start).Seconds(), line)
}

type docTerminal struct{ *rig.Terminal }

// awaitOrEnd waits until the terminal shows a match, or its process ends: it reports which.
func (x docTerminal) awaitOrEnd(shows *regexp.Regexp) (ended bool) {
	for start := time.Now(); !shows.MatchString(x.Out.String()); {
		select {
		case <-x.Closed():
			return true
		case <-time.After(time.Millisecond):
		}
		if time.Since(start) > rig.Patience {
			x.T.Fatalf("waited for %q, got:\n%s", shows, x.Out)
		}
	}
	return false
}

// The programs have the commands and flags that the pages name, in their text as well.
func TestCommandsOfDocs(t *testing.T) {
	t.Parallel()
	help := make(map[string]string) // of a command, by "qt ls"
	command := regexp.MustCompile(`(?:^|[ |"(])(qtd?) ([a-z][a-z-]*)((?: +[^ |&;>"#]+)*)`)
	for _, page := range documents(t) {
		text, blocks := readBlocks(t, page)
		var lines []string
		for _, b := range blocks {
			switch {
			case b.shell():
				lines = append(lines, b.lines...)
				if place := b.place(); place != "" && place != "server" && notRun[place] == "" {
					t.Errorf("%s: %q is no place where commands are typed", page, place)
				}
			case strings.HasPrefix(b.words, "toml "):
				checkSettings(t, b)
			}
		}
		for _, m := range regexp.MustCompile("`(qtd? [^`\n]+)`").FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			lines = append(lines, m[1])
		}
		for _, line := range lines {
			line, _, _ = strings.Cut(line, " #")
			for _, m := range command.FindAllStringSubmatch(line, -1) {
				name := m[1] + " " + m[2]
				if help[name] == "" {
					out, err := exec.Command(filepath.Join(bin, m[1]), m[2], "--help").CombinedOutput()
					if err != nil {
						t.Errorf("%s: %s: %v\n%s", page, line, err, out)
					}
					help[name] = string(out)
				}
				for _, flag := range flagsOf(m[3]) {
					if !regexp.MustCompile(`(?m)^ +(-\w, )?` + flag + `\b|^ +` + flag + `, `).MatchString(help[name]) {
						t.Errorf("%s: %s: %s has no flag %s", page, line, name, flag)
					}
				}
			}
		}
	}
}

// flagsOf returns the flags before the host: what follows may be a command of the host.
func flagsOf(args string) (flags []string) {
	for _, word := range strings.Fields(args) {
		if strings.Contains(word, "server") || strings.Contains(word, "localhost") {
			break
		}
		if flag, _, _ := strings.Cut(word, "="); strings.HasPrefix(flag, "-") {
			flags = append(flags, flag)
		}
	}
	return flags
}

// checkSettings reads a block of settings as the program does that it is for.
func checkSettings(t *testing.T, b block) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settings.toml")
	if err := os.WriteFile(file, []byte(strings.Join(b.lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	switch b.words {
	case "toml qt.toml":
		_, err = configs.LoadClient(file)
	case "toml qtd.toml":
		_, err = configs.LoadServer(file)
	default:
		err = fmt.Errorf("%q names no file of settings", b.words)
	}
	if err != nil {
		t.Errorf("%s: %v", b.page, err)
	}
}
