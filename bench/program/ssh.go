//go:build linux

package program

import (
	"net"
	"net/netip"
	"os/exec"
	"strings"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/topology"
)

// sshPort is where sshd listens in a namespace, in which nothing else runs.
const sshPort = 2222

// SSH is OpenSSH.
type SSH struct {
	Control string // congestion control of the server's TCP, as bbr; or as usual
	Cipher  string // as aes128-gcm@openssh.com; or as usual
}

func (s SSH) Name() string {
	name := "ssh"
	for _, special := range []string{s.Control, s.Cipher} {
		if special, _, _ = strings.Cut(special, "@"); special != "" {
			name += ", " + special
		}
	}
	return name
}

func (s SSH) Missing() string {
	if s.Control != "" && !topology.HasControl(s.Control) {
		return "the kernel has no " + s.Control
	}
	return notInstalled("ssh", sshdPath)
}

func (s SSH) Serve(t *measure.T, on topology.Topology) Server {
	n, ok := on.(*topology.Namespaces)
	if !ok {
		d := startSSHD(t, on.Host(), freeAddr(t))
		d.cipher = s.Cipher
		return sshServer{rivalServer{d, func() []int { return measure.Family(d.cmd.Process.Pid) }, sshSession}}
	}
	if s.Control != "" {
		n.Server.Batch("route replace default dev eth0 congctl " + s.Control)
	}
	d := sshdIn(t, n)
	d.cipher = s.Cipher
	return sshServer{rivalServer{d, func() []int { return topology.Processes(n.Server) }, sshSession}}
}

// An sshServer runs commands without a terminal too.
type sshServer struct{ rivalServer }

func (s sshServer) Pipe(_ *topology.Machine, shell string) *exec.Cmd {
	cmd := s.ssh("-T", shell)
	cmd.Env = s.host.Env()
	return cmd
}

func sshSession(s *sshd, shell string) *exec.Cmd { return s.ssh("-t", shell) }

// sshdIn starts an sshd in the server's namespace. Other programs log in by it too.
func sshdIn(t *measure.T, n *topology.Namespaces, options ...string) *sshd {
	return startSSHD(t, n.Host(), netip.AddrPortFrom(netip.MustParseAddr(topology.ServerIP), sshPort), options...)
}

// freeAddr returns an address on the loopback interface where nothing listens.
func freeAddr(t *measure.T) netip.AddrPort {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}
