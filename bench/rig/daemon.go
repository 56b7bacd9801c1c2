//go:build linux || darwin

package rig

import (
	"bytes"
	"context"
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

	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/wire"
)

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
		"log_level":             `"debug"`,
		"detached_ttl":          `"10m"`, // nothing outlives a test that was killed
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
		addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"),
			uint16(firstPort+(startPort+int(triedPorts.Add(1)))%portCount))
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

// EndSessions asks the holders of all sessions whose sockets match a pattern to end, and waits until they have. Those of
// other accounts accept that from root.
func EndSessions(sockets string) error {
	kill, err := wire.New(&wire.Kill{})
	if err != nil {
		return err
	}
	names, err := filepath.Glob(sockets)
	for _, name := range names {
		var file syscall.Stat_t
		if syscall.Stat(name, &file) != nil {
			continue
		}
		for until := time.Now().Add(Patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			if _, err := socket.Ask(context.Background(), name, file.Uid, &wire.Open{}, kill); err != nil {
				break // it is gone
			}
		}
	}
	return err
}
