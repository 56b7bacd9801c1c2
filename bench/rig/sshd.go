//go:build linux || darwin

package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
)

// sshdProgram is the sshd of this machine; sshd itself wants an absolute name.
const sshdProgram = "/usr/sbin/sshd"

// ErrNoSSHD means that this machine has no sshd that a test can run.
var ErrNoSSHD = errors.New("there is no " + sshdProgram)

// SSHD runs the sshd of this machine with the host's key and authorized_keys, and what config
// adds to its configuration, until the end of the test. It returns its address on the loopback
// interface. An ordinary user can log in to its own account only.
func (h *Host) SSHD(config string) (netip.AddrPort, error) {
	if _, err := os.Stat(sshdProgram); err != nil {
		return netip.AddrPort{}, ErrNoSSHD
	}
	if os.Geteuid() == 0 {
		// root's sshd wants a directory that exists once the machine's own sshd was started.
		if err := os.Mkdir("/run/sshd", 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return netip.AddrPort{}, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return netip.AddrPort{}, err
	}
	name := "sshd_config"
	if _, err := os.Stat(h.Path(name)); err == nil { // of another sshd of this host
		name += fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	}
	// The first value of an option holds, so config comes first.
	h.Write(name, config+fmt.Sprintf(`
HostKey %s
AuthorizedKeysFile %s
PidFile none
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
`, h.Path("host_key"), h.Path("authorized_keys")))
	var wg sync.WaitGroup
	var mu sync.Mutex
	running := make(map[*exec.Cmd]bool) // nil when the test ends
	h.T.Cleanup(func() {
		l.Close()
		mu.Lock()
		for cmd := range running {
			cmd.Process.Kill()
		}
		running = nil
		mu.Unlock()
		wg.Wait()
	})
	serve := func(c net.Conn) {
		defer c.Close()
		f, err := c.(*net.TCPConn).File()
		if err != nil {
			return
		}
		defer f.Close()
		cmd := exec.Command(sshdProgram, "-i", "-e", "-f", h.Path(name))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = f, f, h.Log
		mu.Lock()
		if running != nil && cmd.Start() == nil {
			running[cmd] = true
		}
		mu.Unlock()
		if cmd.Process == nil {
			return
		}
		c.Close()
		f.Close()
		cmd.Wait()
		mu.Lock()
		delete(running, cmd)
		mu.Unlock()
	}
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serve(c) })
		}
	})
	return netip.MustParseAddrPort(l.Addr().String()), nil
}
