package e2e

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// silentPort returns an address at which nothing answers, by UDP or TCP, as where a firewall drops all packets: a queue of
// connections that is full.
func silentPort(t *testing.T) netip.AddrPort {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(name.(*syscall.SockaddrInet4).Port))
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		t.Skip(err) // another program has the port
	}
	t.Cleanup(func() { udp.Close() })
	for {
		c, err := net.DialTimeout("tcp", addr.String(), 500*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
}

// A host at which nothing answers is told within 6 s, whether it was reached before or not.
func TestDeadHost(t *testing.T) {
	s := newSSHHostAlone(t) // no other test takes the time that this one measures
	s.Start()
	s.Serve()
	s.Write("known_hosts_ssh", s.Read("known_hosts_ssh")+"127.0.0.1 "+s.Read("host_key.pub"))
	wantOutput(t, s.QT("connect", nil, "echo in"), "in\n")
	s.awaitReached(fmt.Sprint(s.Addr.Port()))
	const file = "client-state/quicterm/reached.json"
	sshd, dead := s.SSHD, silentPort(t)
	s.SSHD = silentPort(t)
	s.Client["port"] = fmt.Sprint(dead.Port())
	before := strings.NewReplacer(sshd.String(), s.SSHD.String(), fmt.Sprintf(`"port":%d`, s.Addr.Port()), fmt.Sprintf(`"port":%d`, dead.Port()))
	for name, reached := range map[string]string{"never reached": "[]", "reached before": before.Replace(s.Read(file))} {
		for try := 1; ; try++ {
			s.Write(file, reached)
			began := time.Now()
			wantError(t, s.QT("connect", nil, "true"), "ssh to target: connect to host 127.0.0.1 port .*: Connection timed out; and nothing answers at port .*")
			took := time.Since(began)
			t.Logf("%s: %v", name, took)
			if took <= 6*time.Second {
				break
			}
			if try == busyTries {
				t.Errorf("%s: it takes %v", name, took)
				break
			}
		}
	}
}

// Where only the daemon's port answers, the daemon is reached.
func TestOnlyDaemonAnswers(t *testing.T) {
	s := newSSHHost(t)
	s.Start()
	s.SSHD = silentPort(t)
	s.Client["port"] = fmt.Sprint(s.Addr.Port())
	s.SSH = append(s.SSH, "UserKnownHostsFile "+s.Path("known_hosts"))
	began := time.Now()
	wantOutput(t, s.QT("connect", nil, "echo in"), "in\n")
	t.Logf("it takes %v", time.Since(began))
}

// Where only sshd's port answers, and says nothing for longer than a dead host is waited for, ssh is waited for.
func TestOnlySlowSSHDAnswers(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	sshd := s.SSHD
	slow, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slow.Close() })
	go func() {
		for {
			c, err := slow.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				time.Sleep(7 * time.Second)
				to, err := net.Dial("tcp", sshd.String())
				if err != nil {
					return
				}
				defer to.Close()
				go io.Copy(to, c)
				io.Copy(c, to)
			}()
		}
	}()
	s.SSHD = netip.MustParseAddrPort(slow.Addr().String())
	s.Write("known_hosts_ssh", fmt.Sprintf("[127.0.0.1]:%d %s", s.SSHD.Port(), s.Read("host_key.pub")))
	s.Client["port"] = fmt.Sprint(silentPort(t).Port())
	wantOutput(t, s.QT("connect", nil, "echo in"), "in\n")
}
