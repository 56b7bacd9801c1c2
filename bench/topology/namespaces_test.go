//go:build linux

package topology

import (
	"net"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A machine reaches the server over TCP, from other addresses when it has moved, and
// processes in its namespace end with it.
func TestNamespaces(t *testing.T) {
	if err := CheckNamespaces(); err != nil {
		t.Skip(err)
	}
	const delay = 10 * time.Millisecond
	left := exec.Command("sleep", "1000")
	err := new(measure.Group).Run(t.Name(), "", func(m *measure.T) {
		s := NewNamespaces(m, Options{Seed: 1})
		at := s.Machine(m, 0, netem.Config{Delay: delay})
		wlan := at.Interface(0)
		listener := rig.Inside(s.Server, func() (net.Listener,
			error) {
			return net.Listen("tcp", net.JoinHostPort(at.Server, "2222"))
		})
		defer listener.Close()
		from := make(chan net.Addr)
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				from <- c.RemoteAddr()
				c.Close()
			}
		}()
		dial := func() (seen, local, control string) {
			at.Namespace.Do(func() error {
				c, err := net.DialTimeout("tcp", listener.Addr().String(), rig.Patience)
				if err != nil {
					return err
				}
				defer c.Close()
				local = c.LocalAddr().(*net.TCPAddr).IP.String()
				raw, err := c.(*net.TCPConn).SyscallConn()
				if err != nil {
					return err
				}
				return raw.Control(func(fd uintptr) {
					control, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
				})
			})
			return (<-from).String(), local, control
		}
		start := time.Now()
		seen, local, control := dial()
		if took := time.Since(start); took < 2*delay {
			t.Errorf("connected after %v, want %v or more", took, 2*delay)
		}
		if seen != "10.1.0.254:49152" || local != "10.1.0.2" {
			t.Errorf("%s is seen as %s", local, seen)
		}
		if want := CongestionControl(); control != want {
			t.Errorf("congestion control is %q, want %q", control, want)
		}
		wlan.Forget()
		// The last packets of the connection before may have got the next port.
		if seen, _, _ := dial(); !strings.HasPrefix(seen, "10.1.0.254:") || seen == "10.1.0.254:49152" {
			t.Errorf("seen as %s when the NAT has forgotten", seen)
		}
		wlan.Readdress()
		if seen, local, _ := dial(); !strings.HasPrefix(seen, "10.1.0.253:") || local != "10.1.0.3" {
			t.Errorf("%s is seen as %s when it has moved", local, seen)
		}
		if up, down := wlan.Arrived(); up == 0 || down == 0 {
			t.Errorf("%d and %d bytes have arrived", up, down)
		}

		left = s.Server.In(left)
		left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := left.Start(); err != nil {
			m.Fatal(err)
		}
		// ip(8) may not have gone there yet.
		for until := time.Now().Add(rig.Patience); len(Processes(s.Server)) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				m.Fatal("no process runs there")
			}
		}
		if pids := Processes(s.Server); !slices.Equal(pids, []int{left.Process.Pid}) {
			t.Errorf("processes are %v, want %d", pids, left.Process.Pid)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Wait(); err == nil || left.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the remaining process ended with %v", err)
	}
}
