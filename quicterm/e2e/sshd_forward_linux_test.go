package e2e

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
)

// everything is what an account may forward that nothing limits: -L to an address (a) and to another port there (b), to a
// name (n) and to a unix socket (u), -R at two ports (r, s) and at a unix socket (v), and the agent (g). Its listener for all
// addresses is reached from this machine alone, unless GatewayPorts lets others reach it (w).
const everything = "g" + ports

const ports = "abnursv"

// forwardCases are about what may be forwarded.
var forwardCases = []policyCase{
	{name: "fwd", want: "ran\n", forwards: everything},
	{name: "fwd-no", keys: `no-port-forwarding KEY`, want: "ran\n", forwards: "g"},
	{name: "fwd-restrict", keys: `restrict KEY`, want: "ran\n", forwards: "-"},
	{name: "fwd-again", keys: `restrict,port-forwarding KEY`, want: "ran\n", forwards: ports},
	{name: "fwd-taken", keys: `port-forwarding,no-port-forwarding KEY`, want: "ran\n", forwards: "g"},
	{name: "fwd-open", keys: `permitopen="127.0.0.1:7001" KEY`, want: "ran\n", forwards: "garsv"},
	{name: "fwd-two", keys: `permitopen="127.0.0.1:7001",permitopen="localhost:*" KEY`, want: "ran\n", forwards: "ganrsv"},
	{name: "fwd-listen", keys: `permitlisten="5001" KEY`, want: "ran\n", forwards: "gabnur", forwardsBySSH: "gabnurv"},
	{name: "fwd-host", keys: `permitlisten="Local*:5002" KEY`, want: "ran\n", forwards: "gabnu", forwardsBySSH: "gabnuv"},
	{name: "fwd-lower", keys: `permitlisten="local*:5002" KEY`, want: "ran\n", forwards: "gabnus", forwardsBySSH: "gabnusv"},
	{name: "fwd-forced", keys: `command="echo ready $SSH_AUTH_SOCK; cat" KEY`, want: "ready\n", forwards: "gabnrs", forwardsBySSH: everything},
	{name: "fwd-forced-no", keys: `restrict,command="echo ready $SSH_AUTH_SOCK; cat" KEY`, want: "ready\n", forwards: "-"},
	{name: "fwd-tcp-no", config: "AllowTcpForwarding no", want: "ran\n", forwards: "g"},
	{name: "fwd-tcp-local", config: "AllowTcpForwarding local", want: "ran\n", forwards: "gabnu"},
	{name: "fwd-tcp-remote", config: "AllowTcpForwarding remote", want: "ran\n", forwards: "grsv"},
	{name: "fwd-unix-no", config: "AllowStreamLocalForwarding no", want: "ran\n", forwards: "gabnrs"},
	{name: "fwd-unix-local", config: "AllowStreamLocalForwarding local", want: "ran\n", forwards: "gabnurs"},
	{name: "fwd-disabled", config: "DisableForwarding yes", keys: `restrict,port-forwarding,agent-forwarding KEY`, want: "ran\n", forwards: "-"},
	{name: "fwd-permit", config: "PermitOpen 127.0.0.1:7002", want: "ran\n", forwards: "gbrsv"},
	{name: "fwd-permit-no", config: "PermitOpen none", want: "ran\n", forwards: "grsv"},
	{name: "fwd-permit-both", config: "PermitOpen 127.0.0.1:7002", keys: `permitopen="127.0.0.1:7001" KEY`, want: "ran\n", forwards: "grsv"},
	{name: "fwd-plisten", config: "PermitListen 5001", want: "ran\n", forwards: "gabnur", forwardsBySSH: "gabnurv"},
	{name: "fwd-plisten-no", config: "PermitListen none", want: "ran\n", forwards: "gabnu", forwardsBySSH: "gabnuv"},
	{name: "fwd-gateway", config: "GatewayPorts yes", want: "ran\n", forwards: everything + "w"},
	{name: "fwd-client", config: "GatewayPorts clientspecified", want: "ran\n", forwards: everything + "w"},
	{name: "fwd-cert", cert: certificate(nil), keys: `cert-authority,principals="ops" CA`, want: "ran\n", forwards: "-"},
	{name: "fwd-cert-yes", cert: certificate(func(c *ssh.Certificate) { c.Extensions["permit-port-forwarding"] = "" }),
		keys: `cert-authority,principals="ops" CA`, want: "ran\n", forwards: ports},
	{name: "agt-no", keys: `no-agent-forwarding KEY`, want: "ran\n", forwards: ports},
	{name: "agt-again", keys: `restrict,agent-forwarding KEY`, want: "ran\n", forwards: "g"},
	{name: "agt-taken", keys: `agent-forwarding,no-agent-forwarding KEY`, want: "ran\n", forwards: ports},
	{name: "agt-ports", keys: `no-agent-forwarding,port-forwarding KEY`, want: "ran\n", forwards: ports},
	{name: "agt-config", config: "AllowAgentForwarding no", keys: `agent-forwarding KEY`, want: "ran\n", forwards: ports},
	{name: "agt-all", config: "AllowAgentForwarding no\nAllowTcpForwarding no", want: "ran\n", forwards: "-"},
	{name: "agt-forced", config: "ForceCommand echo ready $SSH_AUTH_SOCK; cat", keys: `restrict,agent-forwarding KEY`,
		want: "ready\n", forwards: "g"},
	{name: "agt-cert", cert: certificate(func(c *ssh.Certificate) { c.Extensions["permit-agent-forwarding"] = "" }),
		keys: `cert-authority,principals="ops" CA`, want: "ran\n", forwards: "g"},
}

// A portProbe is a forward, and the address at which it is reached.
type portProbe struct {
	letter           string
	flag, forward    string
	network, address string
}

func portProbes(home string) []portProbe {
	return []portProbe{
		{"a", "-L", "6001:127.0.0.1:7001", "tcp", "127.0.0.1:6001"},
		{"b", "-L", "6002:127.0.0.1:7002", "tcp", "127.0.0.1:6002"},
		{"n", "-L", "6003:localhost:7001", "tcp", "127.0.0.1:6003"},
		{"u", "-L", "6004:/run/target", "tcp", "127.0.0.1:6004"},
		{"r", "-R", "5001:127.0.0.1:7001", "tcp", "127.0.0.1:5001"},
		{"s", "-R", "5002:127.0.0.1:7001", "tcp", "127.0.0.1:5002"},
		{"v", "-R", home + "/far:127.0.0.1:7001", "unix", home + "/far"},
		{"w", "-R", "*:5003:127.0.0.1:7001", "tcp", "10.9.0.1:5003"},
	}
}

// works reports whether a forward leads to its target.
func (p portProbe) works() bool {
	c, err := net.Dial(p.network, p.address)
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(rig.Patience))
	word := make([]byte, 5)
	io.ReadFull(c, word)
	return string(word) == "word:"
}

// forwarded runs a client whose command prints a word when all listens that the client has asked for, and returns
// what is forwarded.
func forwarded(t *testing.T, cmd *exec.Cmd, probes []portProbe) (works string) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, errs := new(rig.Output), new(rig.Output)
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%v says:\n%s", cmd.Args, errs.String())
		}
	}()
	if socket := out.Await(t, 0, regexp.MustCompile(`ready ?(\S*)\n`))[1]; socket != "" {
		keys, c := keysAt(t, socket)
		c.Close()
		if keys == "mine" {
			works = "g"
		}
	}
	for _, p := range probes {
		if p.works() {
			works += p.letter
		}
	}
	return cmp.Or(works, "-")
}

// Root's daemon forwards what the sshd of the machine does for a key, and nothing else.
func TestSSHDForwards(t *testing.T) {
	skipUnderRace(t)
	if !inside(t) {
		return
	}
	ownTemporary(t)
	h := newHost(t)
	machine(t, h)
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
	for _, port := range []int{7001, 7002} {
		echoes(t, "tcp", fmt.Sprintf("127.0.0.1:%d", port), "word:")
	}
	echoes(t, "unix", "/run/target", "word:")
	if err := os.Chmod("/run/target", 0o666); err != nil {
		t.Fatal(err)
	}
	mine := startAgent(t, h, "mine")
	const command = "echo ready $SSH_AUTH_SOCK; cat"
	for i, c := range forwardCases {
		home, uid := "/home/"+c.name, 70000+len(policyCases)-len(forwardCases)+i
		if err := os.Chown(home, uid, uid); err != nil {
			t.Fatal(err)
		}
		key := h.Path("id")
		if c.cert != nil {
			key = writeCertificate(t, h.Dir, &c, id, h.Key, authority)
		}
		flags := []string{"-A", "-l", c.name, "-i", key}
		all := portProbes(home)
		for _, p := range all {
			flags = append(flags, p.flag, p.forward)
		}
		byQT := mine.with(h.To("127.0.0.1", h.Addr.Port(), "connect", flags, command))
		if got := forwarded(t, byQT, all); got != c.forwards {
			t.Errorf("%s by qt: %s is forwarded, want %s", c.name, got, c.forwards)
		}
		os.Remove(home + "/far")
		bySSH := exec.Command("ssh", slices.Concat([]string{"-F", "none", "-T", "-o", "BatchMode=yes",
			"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
			"-o", "IdentitiesOnly=yes", "-o", "KexAlgorithms=curve25519-sha256"}, flags, []string{"127.0.0.1", command})...)
		bySSH.Env = h.Env()
		mine.with(bySSH)
		if got, want := forwarded(t, bySSH, all), cmp.Or(c.forwardsBySSH, c.forwards); got != want {
			t.Errorf("%s by ssh: %s is forwarded, want %s", c.name, got, want)
		}
		os.Remove(home + "/far")
	}

	// A client that is refused is told, and its session goes on.
	refused := []string{"-l", "fwd-restrict", "-i", h.Path("id"), "-R", "5001:127.0.0.1:7001"}
	out, err := h.To("127.0.0.1", h.Addr.Port(), "connect", refused, "echo on").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "qt: nothing may be forwarded: by an option of the key") || !strings.Contains(string(out), "on\n") {
		t.Errorf("%v: %s", err, out)
	}
	wantError(t, h.To("127.0.0.1", h.Addr.Port(), "forward", refused), "nothing may be forwarded")
}
