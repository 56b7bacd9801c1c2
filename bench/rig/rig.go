//go:build linux || darwin

// Package rig is a host with a daemon, a user with a key, the user's terminal, and a
// network between, for tests and measurements of the programs. It promises that all of it
// ends with the test.
package rig

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	mrand "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/quicterm/gate"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Patience is how long anything may take on a busy machine before it fails.
const Patience = 20 * time.Second

// T is the test or measurement that uses a rig.
type T interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Logf(format string, args ...any)
	Cleanup(func())
}

// Build builds qt and qtd into a directory, from the module that the working
// directory is in, with extra arguments for go build. Without -race, they are those of a release.
func Build(dir string, args ...string) error {
	all := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", dir}, args...)
	all = append(all, "github.com/quicterm/quicterm/cmd/qt", "github.com/quicterm/quicterm/cmd/qtd")
	cmd := exec.Command("go", all...)
	if !slices.Contains(args, "-race") { // which needs cgo
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// A Host is a machine with a daemon, and a user with a key on the same machine.
type Host struct {
	T        T
	Bin      string            // where qt and qtd are
	Dir      string            // of all its files
	Settings map[string]string // of the daemon, beyond the usual ones, as TOML
	Client   map[string]string // of the client
	Daemon   *exec.Cmd
	Log      *Output                              // of the daemon and its holders
	Addr     netip.AddrPort                       // of the daemon, where it listens unless the settings say otherwise
	Key      ssh.PublicKey                        // of the user
	In       interface{ In(*exec.Cmd) *exec.Cmd } // namespace of the daemon; nil means this process's
}

// NewHost prepares a host. Its daemon is started by Start.
func NewHost(t T, bin string) *Host {
	t.Helper()
	// Unix sockets need short paths.
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{T: t, Dir: dir, Bin: bin, Settings: map[string]string{}, Client: map[string]string{}, Log: new(Output), Addr: freeAddr(t)}
	t.Cleanup(func() {
		if h.Daemon != nil {
			h.Stop(syscall.SIGTERM)
		}
		h.endSessions() // which wait for no client once the daemon is gone
		os.RemoveAll(dir)
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", h.Log.String())
		}
	})
	h.NewKey("host_key")
	h.Key = h.NewKey("id")
	h.Write("authorized_keys", string(ssh.MarshalAuthorizedKey(h.Key)))
	return h
}

// NewKey makes a private key file and its public half beside it.
func (h *Host) NewKey(name string) ssh.PublicKey {
	h.T.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		h.T.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		h.T.Fatal(err)
	}
	h.Write(name, string(pem.EncodeToMemory(block)))
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		h.T.Fatal(err)
	}
	h.Write(name+".pub", string(ssh.MarshalAuthorizedKey(key)))
	return key
}

// Path returns the name of a file of the host.
func (h *Host) Path(name string) string { return filepath.Join(h.Dir, name) }

// Write writes a file of the host, for its owner alone if it is new. A process that reads it
// meanwhile gets all of the old content or of the new one.
func (h *Host) Write(name, content string) {
	h.T.Helper()
	file := h.Path(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		h.T.Fatal(err)
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode()
	}
	// A child of another test must not inherit the file: what is open for writing cannot run.
	syscall.ForkLock.RLock()
	err := os.WriteFile(file+".new", []byte(content), 0o600)
	syscall.ForkLock.RUnlock()
	if err == nil {
		err = errors.Join(os.Chmod(file+".new", mode), os.Rename(file+".new", file))
	}
	if err != nil {
		h.T.Fatal(err)
	}
}

// Read returns the content of a file of the host.
func (h *Host) Read(name string) string {
	h.T.Helper()
	b, err := os.ReadFile(h.Path(name))
	if err != nil {
		h.T.Fatal(err)
	}
	return string(b)
}

// Start starts the daemon, on the same port as before, and adds its host key to the user's
// known hosts. It returns when the daemon listens.
func (h *Host) Start() {
	h.T.Helper()
	settings := map[string]string{
		"listen":                fmt.Sprintf("[%q]", h.Addr),
		"runtime_dir":           fmt.Sprintf("%q", h.Path("run")),
		"state_dir":             fmt.Sprintf("%q", h.Path("state")),
		"host_key":              fmt.Sprintf("[%q]", h.Path("host_key")),
		"authorized_keys_files": fmt.Sprintf("[%q]", h.Path("authorized_keys")),
		"sshd_policy":           `"ignore"`, // that of this machine
		"login_records":         `"off"`,    // in files of this machine
		"log_level":             `"debug"`,
		"detached_ttl":          `"10m"`, // nothing outlives a test that was killed
		"pipe_ttl":              `"10m"`,
		"exited_ttl":            `"10m"`,
	}
	maps.Copy(settings, h.Settings)
	h.Write("qtd.toml", toml(settings))
	before := h.Log.Len()
	h.Daemon = exec.Command(filepath.Join(h.Bin, "qtd"), "serve", "--config", h.Path("qtd.toml"))
	if h.In != nil {
		h.Daemon = h.In.In(h.Daemon)
	}
	// Holders have the log too, and keep it open when the daemon ends.
	r, w, err := os.Pipe()
	if err != nil {
		h.T.Fatal(err)
	}
	h.Daemon.Stderr = w
	err = h.Daemon.Start()
	w.Close()
	if err != nil {
		h.T.Fatal(err)
	}
	go func() {
		io.Copy(h.Log, r)
		r.Close()
	}()
	found := h.Log.Await(h.T, before, regexp.MustCompile(`listening address=(\S+)`))
	if m, ok := h.In.(interface{ await() }); ok {
		m.await()
	}
	h.Addr = netip.MustParseAddrPort(found[1])
	h.Know(h.Addr, h.Path("host_key.pub"))
}

// Systems give ports from 32768 or 49152 on to sockets that name none.
const firstPort, portCount = 20_000, 10_000

var (
	startPort  = mrand.IntN(portCount) // at random: other processes take ports too
	triedPorts atomic.Int64
)

// freeAddr returns a loopback address with a free port that the kernel gives to no socket by
// itself, and this process to no other host: the port stays free while the daemon restarts.
func freeAddr(t T) netip.AddrPort {
	t.Helper()
	for tries := 1; ; tries++ {
		addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(firstPort+(startPort+int(triedPorts.Add(1)))%portCount))
		err := free(addr)
		if err == nil {
			return addr
		}
		if tries == 100 {
			t.Fatalf("no port is free: %v", err)
		}
	}
}

// free returns an error if a UDP or a TCP socket has an address.
func free(addr netip.AddrPort) error {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return err
	}
	defer c.Close()
	l, err := net.Listen("tcp", addr.String())
	if err != nil {
		return err
	}
	return l.Close()
}

// toml writes settings.
func toml(settings map[string]string) string {
	var b strings.Builder
	for key, value := range settings {
		fmt.Fprintf(&b, "%s = %s\n", key, value)
	}
	return b.String()
}

// Know adds a server's public key file to the user's known hosts.
func (h *Host) Know(addr netip.AddrPort, file string) {
	h.T.Helper()
	h.KnowName(addr.Addr().String(), addr.Port(), file)
}

// KnowName is Know for a server with a name.
func (h *Host) KnowName(name string, port uint16, file string) {
	h.T.Helper()
	known, _ := os.ReadFile(h.Path("known_hosts"))
	key, err := os.ReadFile(file)
	if err != nil {
		h.T.Fatal(err)
	}
	h.Write("known_hosts", string(known)+fmt.Sprintf("[%s]:%d %s", name, port, key))
}

// Stop ends the daemon with a signal and waits until it is gone.
func (h *Host) Stop(sig syscall.Signal) {
	h.T.Helper()
	h.Daemon.Process.Signal(sig)
	h.Daemon.Wait()
	h.Daemon = nil
}

// Network returns the process of the daemon that talks to clients: of root's daemon another one than
// the daemon itself.
func (h *Host) Network() (pid int) {
	h.T.Helper()
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		return h.Daemon.Process.Pid
	}
	for until := time.Now().Add(Patience); ; time.Sleep(10 * time.Millisecond) {
		for _, pid := range h.Children() {
			args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if strings.HasPrefix(string(args), "qtd\x00network\x00") {
				return pid
			}
		}
		if time.Now().After(until) {
			h.T.Fatal("the daemon has no network process")
		}
	}
}

// Processes returns the process of the daemon and, if that is another one, the one that talks to
// clients.
func (h *Host) Processes() []int {
	h.T.Helper()
	return slices.Compact([]int{h.Daemon.Process.Pid, h.Network()})
}

// Children returns the processes that the daemon has started and that run, on Linux.
func (h *Host) Children() (pids []int) {
	h.T.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		h.T.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if fields[1] == strconv.Itoa(h.Daemon.Process.Pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endSessions asks the holders of all sessions to end.
func (h *Host) endSessions() {
	kill, err := wire.New(&wire.Kill{})
	if err != nil {
		h.T.Fatal(err)
	}
	sockets, _ := filepath.Glob(h.Path("run/*/*.sock"))
	for _, socket := range sockets {
		for until := time.Now().Add(Patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			if _, err := holder.Ask(context.Background(), socket, uint32(os.Getuid()), &wire.Open{}, kill); err != nil {
				break // it is gone
			}
		}
	}
}

// Proxy puts a link between the user and the daemon. Clients that Via starts at its
// address use it.
func (h *Host) Proxy(cfg netem.Config) *netem.Proxy {
	h.T.Helper()
	p, err := netem.NewProxy(h.Addr, cfg, 1)
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() { p.Close() })
	h.Know(p.Addr(), h.Path("host_key.pub"))
	return p
}

// QT returns a command of the client for this host: the subcommand, then its
// arguments after the host.
func (h *Host) QT(subcommand string, args ...string) *exec.Cmd {
	return h.Via(h.Addr, subcommand, nil, args...)
}

// Via returns a command of the client for a daemon at an address.
func (h *Host) Via(addr netip.AddrPort, subcommand string, flags []string, args ...string) *exec.Cmd {
	h.T.Helper()
	return h.To(addr.Addr().String(), addr.Port(), subcommand, flags, args...)
}

// To is Via for a server with a name.
func (h *Host) To(name string, port uint16, subcommand string, flags []string, args ...string) *exec.Cmd {
	h.T.Helper()
	flags = append([]string{"-p", strconv.Itoa(int(port))}, flags...)
	return h.Named(name, "/dev/null", subcommand, flags, args...)
}

// Named returns a command of the client for a server that a file of ssh's configuration names.
func (h *Host) Named(name, config, subcommand string, flags []string, args ...string) *exec.Cmd {
	h.T.Helper()
	settings := map[string]string{
		"identity_files":    fmt.Sprintf("[%q]", h.Path("id")),
		"known_hosts_files": fmt.Sprintf("[%q]", h.Path("known_hosts")),
	}
	maps.Copy(settings, h.Client)
	h.Write("config/quicterm/qt.toml", toml(settings))
	all := append([]string{subcommand, "-F", config}, flags...)
	all = append(all, name)
	cmd := exec.Command(filepath.Join(h.Bin, "qt"), append(all, args...)...)
	cmd.Env = h.Env()
	return cmd
}

// Env returns the environment of the user's programs.
func (h *Host) Env() []string {
	env := []string{"XDG_CONFIG_HOME=" + h.Path("config"), "XDG_STATE_HOME=" + h.Path("client-state"), "TERM=xterm", "SHLVL=1", "LC_NAME=carried over", "SECRET=not"}
	for _, name := range []string{"PATH", "HOME", "USER", "GORACE"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	return env
}

// An Output is all that a process prints. The zero value is ready.
type Output struct {
	gate gate.Gate // of buf
	buf  bytes.Buffer
}

func (o *Output) Write(b []byte) (int, error) {
	o.gate.Lock()
	defer o.gate.Unlock()
	o.gate.Changed()
	return o.buf.Write(b)
}

func (o *Output) String() string {
	o.gate.Lock()
	defer o.gate.Unlock()
	return o.buf.String()
}

// Len returns how many bytes were printed.
func (o *Output) Len() int { return len(o.String()) }

// Await waits until what was printed from an offset on matches, and returns the
// match and its groups.
func (o *Output) Await(t T, from int, re *regexp.Regexp) []string {
	t.Helper()
	return o.awaitWithin(t, Patience, from, re)
}

func (o *Output) awaitWithin(t T, patience time.Duration, from int, re *regexp.Regexp) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var found []string
	o.gate.Lock()
	defer o.gate.Unlock()
	text := func() []byte { return o.buf.Bytes()[min(from, o.buf.Len()):] }
	err := o.gate.Wait(ctx, func() bool {
		for _, group := range re.FindSubmatch(text()) {
			found = append(found, string(group))
		}
		return found != nil
	})
	if err != nil {
		t.Fatalf("waited for %q, got:\n%s", re, text())
	}
	return found
}

// A Terminal is a process on a terminal, and its user.
type Terminal struct {
	T    T
	Cmd  *exec.Cmd
	TTY  *os.File // the user's side
	Out  *Output
	Read int           // how much of Out was expected so far
	done chan struct{} // closed when the terminal is closed by the process
}

// Open starts a process on a terminal of 80 columns and 24 rows.
func Open(t T, cmd *exec.Cmd) *Terminal {
	t.Helper()
	out := new(Output)
	x := Watch(t, cmd, out)
	x.Out = out
	return x
}

// Watch is Open for more output than fits memory: w gets it, and Expect cannot be used.
func Watch(t T, cmd *exec.Cmd, w io.Writer) *Terminal {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	x := &Terminal{T: t, Cmd: cmd, TTY: tty, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		buf := make([]byte, 64<<10)
		for {
			n, err := tty.Read(buf)
			w.Write(buf[:n])
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

// Shell opens a session with a shell that has a known prompt.
func (h *Host) Shell(addr netip.AddrPort, flags ...string) *Terminal {
	h.T.Helper()
	x := Open(h.T, h.Via(addr, "connect", append([]string{"-t"}, flags...), "exec env PS1='$ ' HISTFILE= sh"))
	x.Expect(`\$ `)
	return x
}

// Holder returns the process of the holder of the shell that types are for, which must have the prompt
// of [Host.Shell]. Between the two may be su, which has opened the session.
func (x *Terminal) Holder() (pid int) {
	x.T.Helper()
	x.Send(`p=$PPID; [ "$(cat /proc/$p/comm 2>/dev/null)" = su ] && p=$(awk '/^PPid:/ { print $2 }' /proc/$p/status); echo hol''der $p` + "\r")
	fmt.Sscan(x.Expect(`holder (\d+)\r`)[1], &pid)
	x.Expect(`\$ `)
	return pid
}

// Closed is closed when the process has closed its terminal, for example by its end.
func (x *Terminal) Closed() <-chan struct{} { return x.done }

// Expect waits until the terminal shows a match after the previous one, and returns it
// with its groups.
func (x *Terminal) Expect(re string) []string {
	x.T.Helper()
	return x.ExpectWithin(re, Patience)
}

// ExpectWithin is Expect with another limit.
func (x *Terminal) ExpectWithin(re string, patience time.Duration) []string {
	x.T.Helper()
	found := x.Out.awaitWithin(x.T, patience, x.Read, regexp.MustCompile(re))
	x.Read += strings.Index(x.Out.String()[x.Read:], found[0]) + len(found[0])
	return found
}

// Send types.
func (x *Terminal) Send(s string) {
	x.T.Helper()
	if _, err := x.TTY.WriteString(s); err != nil {
		x.T.Fatal(err)
	}
}

// Run types a command and waits for what it prints and the next prompt.
func (x *Terminal) Run(command, want string) {
	x.T.Helper()
	x.Send(command + "\r")
	x.Expect(want)
	x.Expect(`\$ `)
}

// Exit waits for the end of the process and returns its exit status.
func (x *Terminal) Exit() int {
	x.T.Helper()
	timer := time.AfterFunc(Patience, func() { x.Cmd.Process.Kill() })
	defer timer.Stop()
	x.Cmd.Wait()
	return x.Cmd.ProcessState.ExitCode()
}
