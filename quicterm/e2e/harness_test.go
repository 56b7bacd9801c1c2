//go:build linux || darwin

// Package e2e tests the programs as people use them: real processes, terminals
// and sockets, all on the loopback interface.
package e2e

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// patience is how long anything may take on a busy machine before a test fails.
const patience = 20 * time.Second

var bin string // where qt and qtd are

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "qt")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		args := []string{"build", "-o", dir}
		if raceEnabled {
			args = append(args, "-race")
		}
		out, err := exec.Command("go", append(args, "../../cmd/qt", "../../cmd/qtd")...).CombinedOutput()
		if err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
		bin = dir
		return m.Run()
	}())
}

// A host is a machine with a daemon, and a person with a key who uses it from
// the same machine.
type host struct {
	t        *testing.T
	dir      string
	settings map[string]string // of the daemon, beyond the usual ones
	client   map[string]string // of the client
	daemon   *exec.Cmd
	log      *output
	addr     netip.AddrPort
	key      ssh.PublicKey // the person's
}

// newHost prepares a host. Its daemon is started by start.
func newHost(t *testing.T) *host {
	t.Helper()
	// Paths of unix sockets must be short.
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, dir: dir, settings: map[string]string{}, client: map[string]string{}, log: newOutput()}
	t.Cleanup(func() {
		h.endSessions()
		if h.daemon != nil {
			h.stop(syscall.SIGTERM)
		}
		os.RemoveAll(dir)
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", h.log.String())
		}
	})
	h.newKey("host_key")
	h.key = h.newKey("id")
	h.write("authorized_keys", string(ssh.MarshalAuthorizedKey(h.key)))
	return h
}

// newKey makes a private key file and its public half beside it.
func (h *host) newKey(name string) ssh.PublicKey {
	h.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(name, string(pem.EncodeToMemory(block)))
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(name+".pub", string(ssh.MarshalAuthorizedKey(key)))
	return key
}

func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

func (h *host) write(name, content string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(h.path(name)), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(h.path(name), []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) read(name string) string {
	h.t.Helper()
	b, err := os.ReadFile(h.path(name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

// start starts the daemon, on the port that it had before if it had one, and
// makes it known to the person.
func (h *host) start() {
	h.t.Helper()
	if !h.addr.IsValid() {
		h.addr = netip.MustParseAddrPort("127.0.0.1:0")
	}
	settings := map[string]string{
		"listen":                fmt.Sprintf("[%q]", h.addr),
		"runtime_dir":           fmt.Sprintf("%q", h.path("run")),
		"state_dir":             fmt.Sprintf("%q", h.path("state")),
		"host_key":              fmt.Sprintf("[%q]", h.path("host_key")),
		"authorized_keys_files": fmt.Sprintf("[%q]", h.path("authorized_keys")),
		"log_level":             `"debug"`,
		"detached_ttl":          `"10m"`, // so that nothing outlives a test that was killed
		"pipe_ttl":              `"10m"`,
		"exited_ttl":            `"10m"`,
	}
	maps.Copy(settings, h.settings)
	h.write("qtd.toml", toml(settings))
	before := h.log.len()
	h.daemon = exec.Command(filepath.Join(bin, "qtd"), "serve", "--config", h.path("qtd.toml"))
	// Holders have the log too, and keep it open when the daemon ends.
	r, w, err := os.Pipe()
	if err != nil {
		h.t.Fatal(err)
	}
	h.daemon.Stderr = w
	err = h.daemon.Start()
	w.Close()
	if err != nil {
		h.t.Fatal(err)
	}
	go func() {
		io.Copy(h.log, r)
		r.Close()
	}()
	found := h.log.await(h.t, before, regexp.MustCompile(`listening address=(\S+)`))
	h.addr = netip.MustParseAddrPort(found[1])
	h.know(h.addr, h.path("host_key.pub"))
}

// toml writes settings.
func toml(settings map[string]string) string {
	var b strings.Builder
	for key, value := range settings {
		fmt.Fprintf(&b, "%s = %s\n", key, value)
	}
	return b.String()
}

// know has the person know the server at an address by a public key file.
func (h *host) know(addr netip.AddrPort, file string) {
	h.t.Helper()
	key, err := os.ReadFile(file)
	if err != nil {
		h.t.Fatal(err)
	}
	known, _ := os.ReadFile(h.path("known_hosts"))
	h.write("known_hosts", string(known)+fmt.Sprintf("[127.0.0.1]:%d %s", addr.Port(), key))
}

// stop ends the daemon with a signal and waits until it is gone.
func (h *host) stop(sig syscall.Signal) {
	h.t.Helper()
	h.daemon.Process.Signal(sig)
	h.daemon.Wait()
	h.daemon = nil
}

// endSessions ends what is left of sessions, by asking their holders.
func (h *host) endSessions() {
	kill, err := wire.New(&wire.Kill{})
	if err != nil {
		h.t.Fatal(err)
	}
	sockets, _ := filepath.Glob(h.path("run/*/*.sock"))
	for _, socket := range sockets {
		for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			if _, err := holder.Ask(socket, uint32(os.Getuid()), &wire.Open{}, kill); err != nil {
				break // it is gone
			}
		}
	}
}

// proxy puts a link between the person and the daemon: clients that are started
// by via use it.
func (h *host) proxy(cfg netem.Config) *netem.Proxy {
	h.t.Helper()
	p, err := netem.NewProxy(h.addr, cfg, 1)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { p.Close() })
	h.know(p.Addr(), h.path("host_key.pub"))
	return p
}

// qt returns a command of the client for this host: the subcommand, then its
// arguments after the host.
func (h *host) qt(subcommand string, args ...string) *exec.Cmd {
	return h.via(h.addr, subcommand, nil, args...)
}

// via returns a command of the client for a daemon at an address.
func (h *host) via(addr netip.AddrPort, subcommand string, flags []string, args ...string) *exec.Cmd {
	h.t.Helper()
	settings := map[string]string{
		"identity_files":    fmt.Sprintf("[%q]", h.path("id")),
		"known_hosts_files": fmt.Sprintf("[%q]", h.path("known_hosts")),
	}
	maps.Copy(settings, h.client)
	h.write("config/quicterm/qt.toml", toml(settings))
	all := append([]string{subcommand, "-F", "/dev/null", "-p", strconv.Itoa(int(addr.Port()))}, flags...)
	all = append(all, addr.Addr().String())
	cmd := exec.Command(filepath.Join(bin, "qt"), append(all, args...)...)
	cmd.Env = h.env()
	return cmd
}

func (h *host) env() []string {
	env := []string{"XDG_CONFIG_HOME=" + h.path("config"), "TERM=xterm", "LC_TEST=carried over", "SECRET=not"}
	for _, name := range []string{"PATH", "HOME", "USER"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	return env
}

// me returns the name of our account.
func me(t *testing.T) string {
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// An output gathers what a process prints, and can be waited for.
type output struct {
	mu      sync.Mutex
	changed *sync.Cond
	buf     bytes.Buffer
}

func newOutput() *output {
	o := new(output)
	o.changed = sync.NewCond(&o.mu)
	return o
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed.Broadcast()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Len()
}

// await waits until what was printed from an offset on matches, and returns the
// match and its groups.
func (o *output) await(t *testing.T, from int, re *regexp.Regexp) []string {
	t.Helper()
	until := time.Now().Add(patience)
	timer := time.AfterFunc(patience, o.changed.Broadcast)
	defer timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if m := re.FindSubmatch(o.buf.Bytes()[min(from, o.buf.Len()):]); m != nil {
			found := make([]string, len(m))
			for i := range m {
				found[i] = string(m[i])
			}
			return found
		}
		if !time.Now().Before(until) {
			t.Fatalf("waited in vain for %q, got:\n%s", re, o.buf.Bytes()[min(from, o.buf.Len()):])
		}
		o.changed.Wait()
	}
}

// A terminal is a process on a terminal, and a person before it.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	out  *output
	read int           // how much of out was expected so far
	done chan struct{} // closed when the terminal is closed by the process
}

// open starts a process on a terminal of 80 columns and 24 rows.
func open(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: cmd, tty: tty, out: newOutput(), done: make(chan struct{})}
	go func() {
		defer close(x.done)
		buf := make([]byte, 64<<10)
		for {
			n, err := tty.Read(buf)
			x.out.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		tty.Close()
	})
	return x
}

// shell opens a session with a shell that has a known prompt.
func (h *host) shell(addr netip.AddrPort, flags ...string) *terminal {
	h.t.Helper()
	x := open(h.t, h.via(addr, "connect", append([]string{"-t"}, flags...), "exec env PS1='$ ' HISTFILE= sh"))
	x.expect(`\$ `)
	return x
}

// expect waits until the terminal shows something that matches, after what was
// expected before.
func (x *terminal) expect(re string) []string {
	x.t.Helper()
	r := regexp.MustCompile(re)
	found := x.out.await(x.t, x.read, r)
	x.read += strings.Index(x.out.String()[x.read:], found[0]) + len(found[0])
	return found
}

// send types.
func (x *terminal) send(s string) {
	x.t.Helper()
	if _, err := x.tty.WriteString(s); err != nil {
		x.t.Fatal(err)
	}
}

// run types a command and waits for what it prints and the next prompt.
func (x *terminal) run(command, want string) {
	x.t.Helper()
	x.send(command + "\r")
	x.expect(want)
	x.expect(`\$ `)
}

// exit waits for the end of the process and returns its exit status.
func (x *terminal) exit() int {
	x.t.Helper()
	timer := time.AfterFunc(patience, func() { x.cmd.Process.Kill() })
	defer timer.Stop()
	x.cmd.Wait()
	return x.cmd.ProcessState.ExitCode()
}
