//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// catLoopback shows a large file on terminals over quicterm and OpenSSH in turn,
// and looks at how long their processes compute for it: all but the shell and cat.
func (f *feeling) catLoopback(m *measurement) (string, bool) {
	const (
		size   = 200_000_000
		rounds = 2
	)
	h := m.host(nil)
	file := h.Path("text")
	writeLog(m, file, size)
	sshd := startSSH(m, h, freePort(m))
	quic := newShell(m, h.Via(h.Addr, "connect", []string{"-t"}, shellCommand), io.Discard)
	quicPIDs := append(holders(m, h), h.Daemon.Process.Pid, quic.x.Cmd.Process.Pid)
	ssh := newShell(m, sshd.client(shellCommand, "-t"), io.Discard)
	sshPIDs := append(sshd.sessions(m), ssh.x.Cmd.Process.Pid)

	var took, computed [2]time.Duration // by quicterm and ssh
	for range rounds {
		for i, s := range []*shell{quic, ssh} {
			pids := [][]int{quicPIDs, sshPIDs}[i]
			before := cpuTimes(m, pids)
			start := time.Now()
			if s.answer("cat "+file+"\r", time.Minute); f.verbose {
				m.Logf("%s: %v, CPU %v", []string{"quicterm", "ssh"}[i], time.Since(start).Round(time.Millisecond), cpuTimes(m, pids)-before)
			}
			took[i] += time.Since(start)
			computed[i] += cpuTimes(m, pids) - before
		}
	}
	speed := func(i int) float64 { return rounds * size / took[i].Seconds() / 1e6 }
	dear := float64(computed[0]) / float64(computed[1])
	return fmt.Sprintf("%.0f MB/s, ssh %.0f: %.2f x, CPU %.2f x", speed(0), speed(1), speed(0)/speed(1), dear),
		took[0] <= took[1] && dear <= 1.5
}

// catPipe is catLoopback without terminals, from the first byte on, and for
// information.
func (f *feeling) catPipe(m *measurement) (string, bool) {
	const size = 200_000_000
	h := m.host(nil)
	file := h.Path("text")
	writeLog(m, file, size)
	sshd := startSSH(m, h, freePort(m))
	pipe := func(cmd *exec.Cmd) float64 {
		out, err := cmd.StdoutPipe()
		if err != nil {
			m.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			m.Fatal(err)
		}
		timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		defer timer.Stop()
		first, _ := out.Read(make([]byte, 1))
		start := time.Now()
		n, _ := io.Copy(struct{ io.Writer }{io.Discard}, out)
		took := time.Since(start)
		if err := cmd.Wait(); err != nil {
			m.Fatalf("%s: %v", cmd.Args[0], err)
		}
		return float64(int64(first)+n) / took.Seconds()
	}
	quic, ssh := pipe(h.QT("connect", "cat "+file)), pipe(sshd.client("cat "+file, "-T"))
	return fmt.Sprintf("%.0f MB/s, ssh %.0f: %.2f x", quic/1e6, ssh/1e6, quic/ssh), true
}

// catFar shows a file over a long fast link that loses a little. OpenSSH's TCP has the
// congestion control of most distributions there and, for information, BBR.
func (f *feeling) catFar(m *measurement) (string, bool) {
	const (
		size  = 50_000_000
		rtt   = 50 * time.Millisecond
		rate  = 100_000_000      // bits per second
		limit = 25 * time.Second // less is compared where that takes longer
		ratio = 1.5
	)
	link := netem.Config{Delay: rtt / 2, Loss: 0.001, Rate: rate, Queue: 600_000} // a round trip's worth
	speeds := map[string]float64{}
	for _, what := range []string{"auto", "off", "ssh", "ssh bbr"} {
		err := m.all.run(m.name+", "+what, m.bin, func(m *measurement) {
			n := newFeelNet(m)
			here, _ := n.client(m, 1, 1, link)
			h := n.host
			overSSH := strings.HasPrefix(what, "ssh")
			if !overSSH {
				h.Client["compression"] = strconv.Quote(what)
			}
			if what == "ssh bbr" {
				n.server.Batch("route replace default dev eth0 congctl bbr")
			}
			h.Start()
			writeLog(m, h.Path("text"), size)
			var client *exec.Cmd
			if overSSH {
				client = startSSH(m, h, netip.MustParseAddrPort(serverIP+":2222")).client(shellCommand, "-t")
			} else {
				client = h.Via(h.Addr, "connect", []string{"-t"}, shellCommand)
			}
			s := newShell(m, here.In(client), io.Discard)
			time.Sleep(settle)
			speeds[what] = s.cat(h.Path("text"), limit)
		})
		if err != nil {
			m.Fatalf("%s: %v", what, err)
		}
	}
	auto, off, ssh := speeds["auto"], speeds["off"], speeds["ssh"]
	return fmt.Sprintf("%.1f MB/s, ssh %.1f: %.2f x (BBR %.1f); uncompressed %.1f: %.2f x", auto/1e6, ssh/1e6, auto/ssh,
		speeds["ssh bbr"]/1e6, off/1e6, off/ssh), auto >= ratio*ssh
}

// freePort returns an address on the loopback interface where nothing listens.
func freePort(m *measurement) netip.AddrPort {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// sessions returns the processes of OpenSSH that serve those who are logged in.
func (s *sshServer) sessions(m *measurement) []int {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		m.Fatal(err)
	}
	var pids []int
	for _, dir := range dirs {
		exe, _ := os.Readlink(dir + "/exe")
		pid, _ := strconv.Atoi(filepath.Base(dir))
		for up := parent(pid); strings.HasPrefix(filepath.Base(exe), "sshd") && up > 1; up = parent(up) {
			if up == s.cmd.Process.Pid {
				pids = append(pids, pid)
			}
		}
	}
	if len(pids) == 0 {
		m.Fatal("no session of sshd found")
	}
	return pids
}

// cpuTimes returns how long some processes have computed.
func cpuTimes(m *measurement, pids []int) time.Duration {
	sum := time.Duration(0)
	for _, pid := range pids {
		sum += cpuTime(m, pid)
	}
	return sum
}
