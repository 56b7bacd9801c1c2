//go:build linux

package main

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// etPort is where a stage's etserver listens, and etFIFO where etterminal, which ssh
// starts, finds it.
const (
	etPort = 2022
	etFIFO = "etserver.fifo"
)

// An etProgram is Eternal Terminal.
type etProgram struct{}

func (etProgram) name() string { return "et" }
func (etProgram) missing() string {
	return notInstalled("et", "etserver", "etterminal", "ssh", sshdPath)
}

func (etProgram) serve(m *measurement, s stage) served {
	n := onNetns(m, s)
	h := n.host()
	if err := os.Mkdir(h.Path("et"), 0o700); err != nil { // for logs
		m.Fatal(err)
	}
	server := n.server.In(exec.Command("etserver", "--port", strconv.Itoa(etPort), "--bindip", h.Addr.Addr().String(),
		"--serverfifo", h.Path(etFIFO), "--logdir", h.Path("et"), "--telemetry=false"))
	if err := server.Start(); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	n.awaitTCP(m, netip.AddrPortFrom(h.Addr.Addr(), etPort))
	return etServed{n, n.startSSH(m)}
}

type etServed struct {
	*netnsStage
	ssh *sshServer
}

// awaitTCP waits until something listens in the server's namespace.
func (s *netnsStage) awaitTCP(m *measurement, addr netip.AddrPort) {
	for until := time.Now().Add(rig.Patience); ; time.Sleep(10 * time.Millisecond) {
		var conn net.Conn
		var err error
		s.server.Do(func() error {
			conn, err = net.DialTimeout("tcp", addr.String(), rig.Patience)
			return nil
		})
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(until) {
			m.Fatalf("nothing listens: %v", err)
		}
	}
}

// command types the shell's command at a login shell: et knows no other way.
func (s etServed) command(_ *seat, shell string) *exec.Cmd {
	h := s.host()
	args := []string{"--port", strconv.Itoa(etPort), "--serverfifo", h.Path(etFIFO), "--logdir", h.Path("et"), "--telemetry=false"}
	for _, option := range s.ssh.options() {
		args = append(args, "--ssh-option", option)
	}
	cmd := exec.Command("et", append(args, "--command", underSh(shell), s.ssh.destination())...)
	cmd.Env = h.Env()
	return cmd
}

func (s etServed) processes(m *measurement) []int { return s.servers(m) }
