//go:build linux || darwin

package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A clientAgent is an ssh agent of a test with one key.
type clientAgent struct {
	socket string
	key    ssh.PublicKey
	bound  atomic.Int64 // connections that were bound to a session as forwarded
}

// startAgent starts one whose key has a comment.
func startAgent(t *testing.T, h *rig.Host, comment string) *clientAgent {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &clientAgent{socket: h.Path(comment + ".agent")}
	if a.key, err = ssh.NewPublicKey(public); err != nil {
		t.Fatal(err)
	}
	keys := agent.NewKeyring().(agent.ExtendedAgent)
	if err := keys.Add(agent.AddedKey{PrivateKey: private, Comment: comment}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", a.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				agent.ServeAgent(bindings{keys, a}, c)
			}()
		}
	}()
	return a
}

// bindings counts session-bind@openssh.com.
type bindings struct {
	agent.ExtendedAgent
	a *clientAgent
}

func (b bindings) Extension(name string, contents []byte) ([]byte, error) {
	if name == "session-bind@openssh.com" && contents[len(contents)-1] == 1 {
		b.a.bound.Add(1)
		return nil, nil
	}
	return nil, agent.ErrExtensionUnsupported
}

// with makes a client one with this agent.
func (a *clientAgent) with(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, "SSH_AUTH_SOCK="+a.socket)
	return cmd
}

// agentSocket returns SSH_AUTH_SOCK of a session.
func agentSocket(t *testing.T, x *rig.Terminal) string {
	t.Helper()
	x.Send(`echo "sock=[$SSH_AUTH_SOCK]"` + "\r")
	return x.Expect(`sock=\[([^$\]]*)\]`)[1]
}

// keysAt returns the comments of the keys of an agent, and its connection.
func keysAt(t *testing.T, socket string) (comments string, c net.Conn) {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(rig.Patience))
	keys, err := agent.NewClient(c).List()
	if err != nil {
		return "error", c // the connection was cut
	}
	for _, k := range keys {
		comments += k.Comment
	}
	return comments, c
}

// awaitKeys waits until an agent has a key, or none. It always answers at once.
func awaitKeys(t *testing.T, why, socket, want string) net.Conn {
	t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		asked := time.Now()
		got, c := keysAt(t, socket)
		if got == want {
			return c
		}
		c.Close()
		if time.Since(asked) > rig.Patience/2 || time.Since(start) > rig.Patience {
			t.Fatalf("%s: the agent has %q, want %q", why, got, want)
		}
	}
}

// The agent of a session is that of the client at the keyboard, by the same path for all of them, and it has no keys while
// there is none.
func TestForwardAgent(t *testing.T) {
	h := newHost(t)
	h.Start()
	one, two := startAgent(t, h, "one"), startAgent(t, h, "two")
	x := rig.Open(t, one.with(h.Via(h.Addr, "connect", []string{"-t", "-A", "-s", "work"}, "exec env PS1='$ ' HISTFILE= sh")))
	x.Run("echo here", "here")
	socket := agentSocket(t, x)
	if !strings.HasSuffix(socket, ".agent") || socket == one.socket {
		t.Fatalf("SSH_AUTH_SOCK is %q", socket)
	}
	c := awaitKeys(t, "at first", socket, "one")
	signed := []byte("signed")
	other, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	other.SetDeadline(time.Now().Add(rig.Patience))
	signature, err := agent.NewClient(other).Sign(one.key, signed)
	other.Close()
	if err == nil {
		err = one.key.Verify(signed, signature)
	}
	if err != nil {
		t.Error(err)
	}
	if one.bound.Load() == 0 {
		t.Error("the agent does not know that it is forwarded")
	}
	st := statusOf(t, x.Cmd)
	if st == nil || len(st.Forwards) != 1 || st.Forwards[0].Kind != "A" || st.Forwards[0].Signatures != 1 || time.Since(st.Forwards[0].Signed) > rig.Patience {
		t.Errorf("qt status: %+v", st)
	}

	// A client without one that types beside it has none.
	beside := rig.Open(t, h.Via(h.Addr, "attach", []string{"--share"}, "work"))
	beside.Run("echo beside", "beside")
	wantCut(t, "another types", c)
	awaitKeys(t, "another types", socket, "")
	x.Run("echo back", "back")
	c = awaitKeys(t, "it types again", socket, "one")
	beside.Cmd.Process.Kill()

	// One that takes the session over brings its own, and one that leaves takes it away.
	y := rig.Open(t, two.with(h.Via(h.Addr, "attach", []string{"-A"}, "work")))
	y.Run("echo mine", "mine")
	wantCut(t, "taken over", c)
	c = awaitKeys(t, "taken over", socket, "two")
	if now := agentSocket(t, y); now != socket {
		t.Errorf("SSH_AUTH_SOCK is %q now", now)
	}
	y.Send("\r~.")
	y.Exit()
	wantCut(t, "detached", c)
	awaitKeys(t, "detached", socket, "")
	z := rig.Open(t, one.with(h.QT("attach", "work")))
	z.Run("echo without", "without")
	awaitKeys(t, "without -A", socket, "")
	z.Send("exit\r")
	z.Exit()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(socket); os.IsNotExist(err) {
			break
		}
		if time.Since(start) > rig.Patience {
			t.Fatal("the socket is left")
		}
	}
}

// wantCut checks that a connection ends.
func wantCut(t *testing.T, why string, c net.Conn) {
	t.Helper()
	c.SetDeadline(time.Now().Add(rig.Patience))
	if n, err := c.Read(make([]byte, 1)); n > 0 || os.IsTimeout(err) {
		t.Errorf("%s: the connection to the agent continues: %v", why, err)
	}
	c.Close()
}

// ForwardAgent of ssh's configuration is for servers whose key was known before, and -A for all.
func TestAgentOfUnknownHost(t *testing.T) {
	h := newHost(t)
	h.Start()
	mine := startAgent(t, h, "mine")
	h.Write("ssh_config", "Host *\nForwardAgent yes\nStrictHostKeyChecking accept-new\nGlobalKnownHostsFile none\nUserKnownHostsFile "+
		h.Path("known")+"\nIdentityFile "+h.Path("id")+"\n")
	connect := func(why string, agent bool, say string, flags ...string) {
		t.Helper()
		cmd := mine.with(h.Named("127.0.0.1", h.Path("ssh_config"), "connect", append([]string{"-p", fmt.Sprint(h.Addr.Port())}, flags...),
			`echo "sock=[$SSH_AUTH_SOCK]"`))
		out, err := cmd.CombinedOutput()
		if got := strings.Contains(string(out), ".agent]"); err != nil || got != agent || !strings.Contains(string(out), "sock=[") || !strings.Contains(string(out), say) {
			t.Errorf("%s: %v\n%s", why, err, out)
		}
	}
	connect("not known", false, "no ssh agent is forwarded: the key of 127.0.0.1 was not known before")
	connect("known", true, "")
	connect("not wanted", false, "", "-A=false")
	h.Write("known", "@cert-authority * "+string(ssh.MarshalAuthorizedKey(h.Key)))
	connect("another key is known", false, "the key of 127.0.0.1 was not known before")
	if err := os.Remove(h.Path("known")); err != nil {
		t.Fatal(err)
	}
	connect("not known, with -A", true, "", "-A")
	mine.socket = ""
	connect("without an agent", false, "no ssh agent is forwarded: none runs here", "-A")
	mine.socket = h.Path("none.agent")
	connect("with a dead one", true, "", "-A")
}

// A login that may offer no agent gets an error, and its session continues without one.
func TestAgentRefused(t *testing.T) {
	h := newHost(t)
	h.Write("authorized_keys", "no-agent-forwarding "+string(ssh.MarshalAuthorizedKey(h.Key)))
	h.Start()
	mine := startAgent(t, h, "mine")
	cmd := mine.with(h.Via(h.Addr, "connect", []string{"-A"}, `echo "sock=[$SSH_AUTH_SOCK]"`))
	out, err := cmd.CombinedOutput()
	if want := "qt: -A: an ssh agent is not permitted: by an option of the key"; err != nil || !strings.Contains(string(out), want) ||
		!strings.Contains(string(out), "sock=[]\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A session that was started and left has a socket for the agents of those who come.
func TestAgentLater(t *testing.T) {
	h := newHost(t)
	h.Start()
	mine := startAgent(t, h, "mine")
	if out, err := mine.with(h.Via(h.Addr, "connect", []string{"-d", "-A", "-s", "later"}, "exec env PS1='$ ' HISTFILE= sh")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	x := rig.Open(t, h.Via(h.Addr, "attach", nil, "later"))
	x.Run("echo here", "here")
	socket := agentSocket(t, x)
	awaitKeys(t, "without -A", socket, "")
	y := rig.Open(t, mine.with(h.Via(h.Addr, "attach", []string{"-A"}, "later")))
	y.Run("echo here", "here")
	awaitKeys(t, "with -A", socket, "mine")
}

// A command finds the agent, though it may ask before its client has heard that it runs. Connections to the agent outlive
// an outage and a crash of the daemon, and those that are made meanwhile wait.
func TestAgentOfCommand(t *testing.T) {
	h := newHost(t)
	h.Start()
	mine := startAgent(t, h, "mine")
	if list, err := exec.LookPath("ssh-add"); err == nil {
		for range 5 {
			out, err := mine.with(h.Via(h.Addr, "connect", []string{"-A"}, list+" -l")).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "mine (ED25519)") {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	}
	p := h.Proxy(netem.Config{})
	x := rig.Open(t, mine.with(h.Via(p.Addr(), "connect", []string{"-t", "-A"}, "exec env PS1='$ ' HISTFILE= sh")))
	x.Expect(`\$ `)
	socket := agentSocket(t, x)
	awaitKeys(t, "at first", socket, "mine")
	dial := func() agent.Agent {
		t.Helper()
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(4 * rig.Patience))
		return agent.NewClient(c)
	}
	through := func(why string, down, up func()) {
		t.Helper()
		kept := dial()
		if got := <-listLater(kept); got != "mine" {
			t.Fatalf("before %s, the agent has %q", why, got)
		}
		down()
		before, meanwhile := listLater(kept), listLater(dial())
		up()
		for of, answer := range map[string]<-chan string{"before": before, "meanwhile": meanwhile} {
			if got := <-answer; got != "mine" {
				t.Errorf("on a connection made %s %s, the agent has %q", of, why, got)
			}
		}
		x.Run("echo af''ter", "after")
	}
	through("a restart", func() { h.Stop(syscall.SIGKILL) }, h.Start)
	through("an outage", func() {
		p.Set(netem.Config{Down: true})
		x.Send("\r") // which is not answered
		for start := time.Now(); statusOf(t, x.Cmd).State != "offline"; time.Sleep(10 * time.Millisecond) {
			if time.Since(start) > 2*rig.Patience {
				t.Fatal("the outage is not noticed")
			}
		}
	}, func() { p.Set(netem.Config{}) })
}

// listLater asks for the keys of an agent, which may take a while, and returns their comments or an error later.
func listLater(a agent.Agent) <-chan string {
	answer := make(chan string, 1)
	go func() {
		keys, err := a.List()
		if err != nil {
			answer <- err.Error()
			return
		}
		comments := ""
		for _, k := range keys {
			comments += k.Comment
		}
		answer <- comments
	}()
	return answer
}

// A client that removes -A in ~+ ends what uses its agent.
func TestAgentRemoved(t *testing.T) {
	h := newHost(t)
	h.Start()
	mine := startAgent(t, h, "mine")
	x := rig.Open(t, mine.with(h.Via(h.Addr, "connect", []string{"-t", "-A"}, "exec env PS1='$ ' HISTFILE= sh")))
	x.Run("echo here", "here")
	socket := agentSocket(t, x)
	c := awaitKeys(t, "before", socket, "mine")
	x.Send("\r~+")
	x.Expect(" 1  -A ")
	x.Expect("Enter leaves")
	x.Send("1\r\r")
	wantCut(t, "removed", c)
	awaitKeys(t, "removed", socket, "")
	x.Run("echo go''es on", "goes on")
}
