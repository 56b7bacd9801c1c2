//go:build linux

package program

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/topology"
)

// A rival is a program whose sessions begin with a login by ssh. It needs namespaces.
type rival struct {
	name    string
	needs   []string                                   // commands, and sshd
	start   func(t *measure.T, n *topology.Namespaces) // what it has beside sshd, or nil
	session func(s *sshd, shell string) *exec.Cmd
}

// Rivals as people use them: mosh, which predicts echoes by its default rule; Eternal
// Terminal; and trzsz-ssh over UDP, by default QUIC, whose own ssh starts its server.
var (
	Mosh    = rival{name: "mosh", needs: []string{"mosh", "mosh-server", "mosh-client", "ssh"}, session: moshSession}
	et      = rival{name: "et", needs: []string{"et", "etserver", "etterminal", "ssh"}, start: startET, session: etSession}
	Tssh    = rival{name: "tssh", needs: []string{"tssh", "tsshd"}, session: tsshSession("QUIC")}
	tsshKCP = rival{name: "tssh-kcp", needs: []string{"tssh", "tsshd"}, session: tsshSession("KCP")}
)

func (r rival) Name() string    { return r.name }
func (r rival) Missing() string { return notInstalled(append(r.needs, sshdPath)...) }

func (r rival) Serve(t *measure.T, on topology.Topology) Server {
	n, ok := on.(*topology.Namespaces)
	if !ok {
		t.Fatal("needs network namespaces")
	}
	if r.start != nil {
		r.start(t, n)
	}
	return rivalServer{sshdIn(t, n), func() []int { return topology.Processes(n.Server) }, r.session}
}

// A rivalServer is a server that clients reach by an sshd, and the processes on its side.
type rivalServer struct {
	*sshd
	processes func() []int
	session   func(s *sshd, shell string) *exec.Cmd
}

func (s rivalServer) Command(_ *topology.Machine, shell string) *exec.Cmd {
	cmd := s.session(s.sshd, shell)
	cmd.Env = append(s.host.Env(), cmd.Env...)
	return cmd
}

func (s rivalServer) Processes(t *measure.T) []int { return servers(t, s.processes()) }

func moshSession(s *sshd, shell string) *exec.Cmd {
	ssh := []string{"ssh"}
	for _, arg := range s.flags() {
		ssh = append(ssh, shellQuote(arg))
	}
	cmd := exec.Command("mosh", "--ssh="+strings.Join(ssh, " "), s.destination(), "--", "sh", "-c", shell)
	cmd.Env = []string{"LC_ALL=C.UTF-8"} // it needs UTF-8 at both ends
	return cmd
}

func tsshSession(mode string) func(s *sshd, shell string) *exec.Cmd {
	return func(s *sshd, shell string) *exec.Cmd {
		tsshd, err := exec.LookPath("tsshd")
		if err != nil {
			s.host.T.Fatal(err)
		}
		args := append(s.flags(), "--udp", "--tsshd-path", tsshd, "-o", "UdpMode="+mode)
		return exec.Command("tssh", append(args, "-t", s.destination(), underSh(shell))...)
	}
}

// etPort is where etserver listens.
const etPort = 2022

// etFlags are those of etserver and et. etterminal, which ssh starts, finds the server by
// the FIFO.
func etFlags(h *rig.Host) []string {
	return []string{"--port", strconv.Itoa(etPort), "--serverfifo", h.Path("etserver.fifo"), "--logdir", h.Path("et"),
		"--telemetry=false"}
}

// etSession makes et type the command at a login shell: et has no other way.
func etSession(s *sshd, shell string) *exec.Cmd {
	args := etFlags(s.host)
	for _, option := range s.options() {
		args = append(args, "--ssh-option", option)
	}
	return exec.Command("et", append(args, "--command", underSh(shell), s.destination())...)
}

// startET starts etserver, and returns when it listens.
func startET(t *measure.T, n *topology.Namespaces) {
	h := n.Host()
	if err := os.Mkdir(h.Path("et"), 0o700); err != nil { // for logs
		t.Fatal(err)
	}
	addr := netip.AddrPortFrom(h.Addr.Addr(), etPort)
	server := n.Server.In(exec.Command("etserver", append(etFlags(h), "--bindip", addr.Addr().String())...))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	for until := time.Now().Add(rig.Patience); ; time.Sleep(10 * time.Millisecond) {
		var conn net.Conn
		var err error
		n.Server.Do(func() error {
			conn, err = net.DialTimeout("tcp", addr.String(), rig.Patience)
			return nil
		})
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(until) {
			t.Fatalf("no server listens: %v", err)
		}
	}
}
