//go:build linux

package main

import (
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A seat reaches the server over TCP, from other addresses when it has moved, and what
// runs on the stage ends with it.
func TestNetnsStage(t *testing.T) {
	if err := rig.CanNamespace(); err != nil {
		t.Skip(err)
	}
	const delay = 10 * time.Millisecond
	left := exec.Command("sleep", "1000")
	err := new(measurements).run(t.Name(), "", func(m *measurement) {
		s := newNetnsStage(m, 1).(*netnsStage)
		at := s.seat(m, 0, netem.Config{Delay: delay})
		var listener net.Listener
		s.server.Do(func() (err error) {
			listener, err = net.Listen("tcp", netip.AddrPortFrom(at.addr.Addr(), sshPort).String())
			return err
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
			at.in.Do(func() error {
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
		if want := defaultTCPControl(); control != want {
			t.Errorf("congestion control is %q, want %q", control, want)
		}
		at.Forget()
		if seen, _, _ := dial(); seen != "10.1.0.254:49153" {
			t.Errorf("seen as %s when the NAT has forgotten", seen)
		}
		at.Readdress()
		if seen, local, _ := dial(); seen != "10.1.0.253:49152" || local != "10.1.0.3" {
			t.Errorf("%s is seen as %s when it has moved", local, seen)
		}
		if up, down := at.Arrived(); up == 0 || down == 0 {
			t.Errorf("%d and %d bytes have arrived", up, down)
		}

		left = s.server.In(left)
		left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := left.Start(); err != nil {
			m.Fatal(err)
		}
		// ip(8) may not have gone there yet.
		for until := time.Now().Add(rig.Patience); len(inhabitants(s.server)) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				m.Fatal("nothing runs there")
			}
		}
		if pids := s.servers(m); !slices.Equal(pids, []int{left.Process.Pid}) {
			t.Errorf("servers are %v, want %d", pids, left.Process.Pid)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Wait(); err == nil || left.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("what was left ended with %v", err)
	}
}
