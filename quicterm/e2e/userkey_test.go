//go:build linux || darwin

package e2e

import (
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/quicterm/quicterm/bench/rig"
)

func TestWrongKey(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.NewKey("id") // another key than the one in authorized_keys
	wantError(t, h.QT("connect", "true"), "permission denied by 127.0.0.1 for "+accountName(t))
	h.Log.Await(t, 0, regexp.MustCompile("client refused.*denied.*not in authorized_keys"))
	os.Remove(h.Path("id"))
	os.Remove(h.Path("id.pub"))
	wantError(t, h.QT("connect", "true"), "no keys to prove who you are: .*ssh-add")
}

func TestWrongUser(t *testing.T) {
	h := newHost(t)
	h.Start()
	wantError(t, h.Via(h.Addr, "connect", []string{"-l", "no-such-user"}, "true"), "permission denied by 127.0.0.1 for no-such-user")
	h.Log.Await(t, 0, regexp.MustCompile("client refused.*no such account"))
}

// The server ignores an authorized_keys file that others may write.
func TestAuthorizedKeysWritableByOthers(t *testing.T) {
	h := newHost(t)
	h.Start()
	if err := os.Chmod(h.Path("authorized_keys"), 0o666); err != nil {
		t.Fatal(err)
	}
	wantError(t, h.QT("connect", "true"), "permission denied")
	h.Log.Await(t, 0, regexp.MustCompile("others may write to it"))
}

// The client signs with the second key if only that one is in authorized_keys.
func TestSecondKey(t *testing.T) {
	h := newHost(t)
	h.NewKey("first")
	h.Identities = []string{"first", "id"}
	h.Start()
	wantOutput(t, h.QT("connect", "echo in"), "in\n")
}

// A key of the ssh agent.
func TestAgent(t *testing.T) {
	h := newHost(t)
	h.Start()
	key, err := ssh.ParseRawPrivateKey([]byte(h.Read("id")))
	if err != nil {
		t.Fatal(err)
	}
	keyring := agent.NewKeyring()
	if err := keyring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", h.Path("agent"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(keyring, c)
		}
	}()
	os.Remove(h.Path("id"))
	cmd := h.QT("connect", "echo in")
	cmd.Env = append(cmd.Env, "SSH_AUTH_SOCK="+h.Path("agent"))
	wantOutput(t, cmd, "in\n")
}

// The client asks for the passphrase of a key file on the terminal, without echo.
func TestPassphrase(t *testing.T) {
	h := newHost(t)
	h.Start()
	key, err := ssh.ParseRawPrivateKey([]byte(h.Read("id")))
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	h.Write("id", string(pem.EncodeToMemory(block)))
	cmd := h.QT("connect", "true")
	cmd.SysProcAttr = noTerminal
	wantError(t, cmd, "permission denied.*no terminal to ask")
	x := rig.Open(t, h.QT("connect", "echo let in"))
	x.Expect("Enter passphrase for key '.*': ")
	x.Send("open sesame\r")
	x.Expect("let in\r\n")
	if strings.Contains(x.Out.String(), "sesame") {
		t.Error("the passphrase was shown")
	}
}

// A key with a forced command runs only that, and reaches no session of other keys.
func TestForcedCommand(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Shell(h.Addr, "-s", "free")
	key := string(ssh.MarshalAuthorizedKey(h.Key))
	h.Write("authorized_keys", `command="echo forced: $SSH_ORIGINAL_COMMAND",restrict `+key)
	wantOutput(t, h.QT("connect", "rm", "-rf"), "forced: rm -rf\n")
	wantError(t, h.Via(h.Addr, "connect", []string{"-t"}, "true"), "may not have a terminal")
	wantError(t, h.Via(h.Addr, "connect", []string{"--cwd", "/"}, "true"), "in the home directory: leave out --cwd")
	out, err := h.QT("ls").Output()
	if err != nil || strings.Contains(string(out), "free") {
		t.Errorf("the listing has sessions of other keys: %v\n%s", err, out)
	}
	wantError(t, h.QT("kill", "free"), `there is no session "free"`)
	h.Write("authorized_keys", `restrict `+key)
	y := rig.Open(t, h.QT("attach", "free"))
	y.Expect("may not have a terminal")
	h.Write("authorized_keys", key)
	untouched(h, "free")
}

// A key gets the verbs for programs that it should have: on a terminal those of who attaches, for the sessions of its
// own command, and of a pipe of its own what is printed and the end.
func TestRestrictedVerbs(t *testing.T) {
	h := newHost(t)
	h.Start()
	key := string(ssh.MarshalAuthorizedKey(h.Key))
	const forced = `command="echo forced; cat; echo over; exit 3"`
	all := [][]string{
		{"run", "x"}, {"send", "x"}, {"wait", "--reading"}, {"wait", "--exit"}, {"tail"}, {"peek"}, {"wait", "--text", "."},
	}
	verb := func(session string, verb []string) *exec.Cmd {
		args := []string{session}
		flags := append([]string{"--timeout", "10s"}, verb[1:]...)
		if last := len(verb) - 1; last > 0 && verb[last] == "x" {
			flags, args = flags[:2], append(args, "x")
		}
		if verb[0] == "peek" {
			flags = nil
		}
		return h.Via(h.Addr, verb[0], flags, args...)
	}
	refused := func(session, why string, verbs ...[]string) {
		t.Helper()
		for _, v := range verbs {
			wantError(t, verb(session, v), why)
		}
	}
	h.Shell(h.Addr, "-s", "free")
	h.Write("authorized_keys", forced+" "+key)
	refused("free", "there is no session", all...)
	mustOutput(t, h.Via(h.Addr, "connect", []string{"-d", "-s", "own"}))
	mustOutput(t, h.Via(h.Addr, "send", []string{"--enter"}, "own", "typed"))
	mustOutput(t, h.Via(h.Addr, "wait", []string{"--text", "^typed$", "--timeout", "1m"}, "own"))
	refused("own", "no shell waits", all[0])

	h.Write("authorized_keys", forced+",restrict "+key)
	refused("free", "there is no session", all...)
	refused("own", "may not have a terminal", all...)
	pipe := h.Via(h.Addr, "connect", []string{"-s", "pipe"})
	in, err := pipe.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := new(rig.Output)
	pipe.Stdout = out
	if err := pipe.Start(); err != nil {
		t.Fatal(err)
	}
	out.Await(t, 0, regexp.MustCompile("forced"))
	refused("pipe", "has no terminal", all[0], all[1], all[2], all[5], all[6])
	from := h.Log.Len()
	tail, wait := h.Via(h.Addr, "tail", []string{"-f"}, "pipe"), h.Via(h.Addr, "wait", []string{"--exit"}, "pipe")
	read, waited := new(rig.Output), new(rig.Output)
	tail.Stdout, wait.Stdout = read, waited
	for n, cmd := range []*exec.Cmd{tail, wait} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.Log.Await(t, from, regexp.MustCompile(fmt.Sprintf("(?s)(client attached[^\n]*role=watch[^\n]*event=attach.*){%d}", n+1)))
	}
	h.Write("authorized_keys", key)
	refused("pipe", "has no terminal", all...) // the account's other keys: a pipe is its key's
	in.Close()
	for _, cmd := range []*exec.Cmd{tail, wait, pipe} {
		cmd.Wait()
	}
	if read.String() != "over\n" || waited.String() != "exit: status 3\n" {
		t.Errorf("tail: %q; wait: %q", read, waited)
	}
	untouched(h, "free")
	h.Write("authorized_keys", "restrict "+key)
	refused("free", "may not have a terminal", all...)
}

// A key with a forced command learns nothing of the sessions of other keys: not from the
// listing, errors or names that are taken, nor from the name that a new session gets.
func TestRestrictedKeyLearnsNoNames(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Shell(h.Addr) // session 1
	y := h.Shell(h.Addr, "-s", "secret")
	y.Send("~.")
	y.Exit()
	id := strings.Fields(string(mustOutput(t, h.QT("ls"))))
	short := id[slices.Index(id, "secret")-1]
	key := string(ssh.MarshalAuthorizedKey(h.Key))
	h.Write("authorized_keys", `command="echo $QUICTERM_SESSION" `+key)
	if out := mustOutput(t, h.QT("ls")); strings.Contains(string(out), "secret") || strings.Contains(string(out), short) {
		t.Errorf("the listing has sessions of other keys:\n%s", out)
	}
	rig.Open(t, h.QT("attach")).Expect("no session runs on a terminal: qt connect opens one")
	for _, name := range []string{"secret", "1", short} {
		why := fmt.Sprintf("there is no session %q", name)
		rig.Open(t, h.QT("attach", name)).Expect(why)
		wantError(t, h.QT("kill", name), why)
	}
	wantOutput(t, h.QT("connect"), "1\n")
	wantOutput(t, h.Via(h.Addr, "connect", []string{"-s", "secret"}), "secret\n")
	wantOutput(t, h.Via(h.Addr, "connect", []string{"-s", "other"}), "other\n")
	h.Write("authorized_keys", key)
	untouched(h, "1")
}

// untouched fails unless a session on a terminal goes on. It attaches anew: on a slow machine the daemon may have checked
// the first client while the key was restricted, and ended it.
func untouched(h *rig.Host, session string) {
	h.T.Helper()
	rig.Open(h.T, h.QT("attach", session)).Run("echo un''touched", "untouched")
}

// A login gets the command that its key has now, and not a session with an earlier one.
func TestForcedCommandChanged(t *testing.T) {
	h := newHost(t)
	h.Start()
	key := string(ssh.MarshalAuthorizedKey(h.Key))
	h.Write("authorized_keys", `command="echo old; cat" `+key)
	old := rig.Open(t, h.Via(h.Addr, "connect", []string{"-s", "work"}))
	old.Expect("old")
	old.Send("~.")
	old.Exit()
	h.Write("authorized_keys", `command="echo new" `+key)
	for name, want := range map[string]string{"": "no session runs on a terminal", "work": "there is no session"} {
		rig.Open(t, h.QT("attach", name)).Expect(want)
	}
	wantOutput(t, h.Via(h.Addr, "connect", []string{"-s", "work"}), "new\n")
}

func mustOutput(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}
