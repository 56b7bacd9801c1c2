package e2e

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
)

// hubbed is the name of a host behind a hub. It is longer than a part of a name may be in the DNS, so that no name server
// is asked about it.
var hubbed = "box" + strings.Repeat("x", 61)

// A testHub is a hub that can be started again.
type testHub struct {
	*rig.Host        // its address and files
	url       string // that it has told
	program   *exec.Cmd
}

// newHub builds and starts a hub with a list.
func newHub(t *testing.T, list string) *testHub {
	t.Helper()
	hub := &testHub{Host: rig.NewHost(t, bin)}
	build := exec.Command("go", "build", "-o", hub.Path("qthub"), "github.com/quicterm/quicterm/cmd/qthub")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	hub.Write("list", list)
	hub.start()
	t.Cleanup(hub.kill)
	return hub
}

// start starts the hub, and returns when it serves.
func (h *testHub) start() {
	h.T.Helper()
	before := h.Log.Len()
	h.program = exec.Command(h.Path("qthub"), "--listen", h.Addr.String(), "--list", h.Path("list"), "--key", h.Path("key"))
	h.program.Stdout, h.program.Stderr = h.Log, h.Log
	if err := h.program.Start(); err != nil {
		h.T.Fatal(err)
	}
	h.url = h.Log.Await(h.T, before, regexp.MustCompile(`(https://\S+#sha256:[\w-]+)`))[1]
}

func (h *testHub) kill() {
	h.program.Process.Kill()
	h.program.Wait()
}

// linksOf returns the processes of a daemon that connect it to a hub.
func linksOf(h *rig.Host) (pids []int) {
	for _, pid := range h.Children() {
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.HasPrefix(string(args), "qtd\x00link\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// wantConfined checks what a process has left.
func wantConfined(t *testing.T, pid int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"} {
		if !strings.Contains(string(status), line+"\n") {
			t.Errorf("the process of the hub does not have %q", line)
		}
	}
	if os.Geteuid() == 0 && strings.Contains(string(status), "Uid:\t0\t") {
		t.Error("the process of the hub is root's")
	}
}

// A host is reached through a hub by its name alone, as one that is dialed: it checks keys itself, and a session outlives
// the hub without losing a byte.
func TestHub(t *testing.T) {
	h := newHost(t)
	other := h.NewKey("other") // that the hub lets in, and the host does not
	hub := newHub(t, fmt.Sprintf("host %s,lab %sperson anna %sperson eve %s", hubbed, h.Read("host_key.pub"),
		ssh.MarshalAuthorizedKey(h.Key), ssh.MarshalAuthorizedKey(other)))
	h.Settings["hub"], h.Settings["hub_name"] = strconv.Quote(hub.url), strconv.Quote(hubbed)
	h.Client["hub"] = strconv.Quote(hub.url)
	before := h.Log.Len()
	h.Start()
	h.Log.Await(t, before, regexp.MustCompile(`msg="this host is reachable through the hub".* name=`+hubbed))
	if links := linksOf(h); len(links) != 1 {
		t.Errorf("%d processes connect the host to the hub", len(links))
	} else {
		wantConfined(t, links[0])
	}
	h.KnowName(hubbed, 4433, h.Path("host_key.pub"))
	qt := func(identity, command string, args ...string) *exec.Cmd {
		config := "ssh_config_" + identity
		h.Write(config, fmt.Sprintf("UserKnownHostsFile %s\nGlobalKnownHostsFile none\nIdentityAgent none\nIdentityFile %s\n"+
			"IdentitiesOnly yes\n", h.Path("known_hosts"), h.Path(identity)))
		h.Named(hubbed, h.Path(config), command, nil) // writes the settings
		cmd := exec.Command(filepath.Join(bin, "qt"), append([]string{command, "-F", h.Path(config)}, args...)...)
		cmd.Env = h.Env()
		return cmd
	}

	list, err := qt("id", "hosts").CombinedOutput()
	if fields := strings.Fields(string(list)); err != nil || len(fields) < 6 || fields[4] != hubbed || fields[5] != "lab" {
		t.Errorf("qt hosts: %v\n%s", err, list)
	}
	for _, test := range []struct{ identity, name, want string }{
		{"id", hubbed, `^42\n$`},
		{"other", hubbed, `qt: permission denied by ` + hubbed},
		{"id", "no-" + hubbed[3:], `qt: neither ssh's configuration nor the DNS knows .*no such host`},
	} {
		out, _ := qt(test.identity, "connect", test.name, "echo $((6*7))$SSH_CONNECTION").CombinedOutput()
		if !regexp.MustCompile(test.want).Match(out) {
			t.Errorf("connect %s by key %s: %q, want %s", test.name, test.identity, out, test.want)
		}
	}
	h.Log.Await(t, before, regexp.MustCompile(`client=\S+@hub `))

	wantEcho(t, qt("id", "connect", hubbed, "cat"), func() {
		hub.kill()
		hub.start()
	})
}

// wantEcho runs a client of cat, and wants its input back, of which it gets a part before and a part after something
// happens.
func wantEcho(t *testing.T, cat *exec.Cmd, between func()) {
	t.Helper()
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cat.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cat.Stderr = &errs
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(2*rig.Patience, func() { cat.Process.Kill() }).Stop()
	first, second := make([]byte, 256<<10), make([]byte, 2<<20)
	rand.Read(first)
	rand.Read(second)
	go in.Write(first)
	got := make([]byte, len(first))
	if _, err = io.ReadFull(out, got); err == nil {
		between()
		go func() { in.Write(second); in.Close() }()
		var rest []byte
		rest, err = io.ReadAll(out)
		got = append(got, rest...)
	}
	err = errors.Join(err, cat.Wait())
	if want := append(first, second...); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v: %d bytes of %d came back, or others: %s", err, len(got), len(want), errs.Bytes())
	}
}

// A daemon without the setting has no process for a hub.
func TestNoHub(t *testing.T) {
	h := newHost(t)
	h.Start()
	if links := linksOf(h); len(links) > 0 {
		t.Errorf("%d processes connect the host to a hub", len(links))
	}
}
