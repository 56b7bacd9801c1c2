//go:build !android

package netmon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// namespaceEnv is the environment variable that names the test which the process
// runs in its own network namespace.
const namespaceEnv = "NETMON_TEST_NAMESPACE"

// inNamespace runs the test in a child process with its own network namespace, and
// reports whether this is the child.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(namespaceEnv) == t.Name() {
		ip(t, "link set lo up")
		return true
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skipf("network namespaces need the command ip (Debian package iproute2): %v", err)
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), namespaceEnv+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch exit := (*exec.ExitError)(nil); {
	case errors.As(err, &exit):
		t.Errorf("in a network namespace: %v\n%s", err, out)
	case err != nil:
		t.Skipf("network namespaces are not permitted: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	default:
		t.Logf("%s", out)
	}
	return false
}

// ip runs commands of ip(8), such as "link add ...".
func ip(t *testing.T, commands ...string) {
	t.Helper()
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(commands, "; "), err, out)
	}
}

// twoNetworks creates the interfaces a0 and a1, whose other ends are b0 and b1, and a
// default route through a0.
func twoNetworks(t *testing.T) {
	t.Helper()
	for i := range 2 {
		link := fmt.Sprintf("link add a%d type veth peer name b%[1]d", i)
		if out, err := exec.Command("ip", strings.Fields(link)...).CombinedOutput(); err != nil {
			t.Skipf("the kernel has no veth devices: %s", out)
		}
		for _, end := range []string{"a", "b"} {
			ip(t, fmt.Sprintf("link set %s%d addrgenmode none", end, i), fmt.Sprintf("link set %s%d up", end, i))
		}
		ip(t, fmt.Sprintf("addr add 10.%d.0.1/24 dev a%[1]d", i))
	}
	ip(t, "route add default via 10.0.0.2 dev a0")
}

var far = netip.MustParseAddrPort("192.0.2.1:443")

// Each kind of change is reported within 100 ms.
func TestChanges(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	twoNetworks(t)
	changes := []struct{ name, do, undo string }{
		{"address", "addr add 10.0.0.9/24 dev a0", "addr del 10.0.0.9/24 dev a0"},
		{"IPv6 address", "addr add 2001:db8::9/64 dev a0 nodad", "addr del 2001:db8::9/64 dev a0"},
		{"link", "link set a1 down", "link set a1 up"},
		{"carrier", "link set b1 down", "link set b1 up"},
		{"route", "route add 192.0.2.0/24 via 10.1.0.2", "route del 192.0.2.0/24 via 10.1.0.2"},
		{"default route", "route replace default via 10.1.0.2", "route replace default via 10.0.0.2"},
	}
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		changes = slices.Delete(changes, 1, 2)
	}
	for name, src := range sources(far) {
		t.Run(name, func(t *testing.T) {
			w := startWatch(t, src)
			for _, c := range changes {
				t.Run(c.name, func(t *testing.T) {
					// A busy machine may take longer, but not ten times.
					var soon [2]bool
					for range 10 {
						for i, change := range []string{c.do, c.undo} {
							took := w.timeToReport(t, change)
							t.Logf("%s: reported after %v", change, took)
							soon[i] = soon[i] || took < 100*time.Millisecond
						}
						if soon == [2]bool{true, true} {
							return
						}
					}
					t.Errorf("never reported within 100 ms")
				})
			}
		})
	}
}

// Many changes cause few reports, and the last change is reported.
func TestManyChanges(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	twoNetworks(t)
	w := startWatch(t, notifications)
	w.drain(t)
	start := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var last time.Time
	for i := range 100 {
		<-tick.C
		last = time.Now()
		ip(t, fmt.Sprintf("addr add 10.2.0.%d/32 dev a0", i+1))
	}
	var reports int
	for at := start; at.Before(last); reports++ {
		at = w.next(t)
	}
	reports += w.drain(t)
	took := time.Since(start)
	t.Logf("%d reports in %v", reports, took)
	if most := int(took/reportInterval) + 1; reports > most || reports < 2 {
		t.Errorf("%d reports, want from 2 to %d", reports, most)
	}
}

// Lookup and Interfaces cause no event.
func TestLookupCausesNoEvent(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	twoNetworks(t)
	w := startWatch(t, notifications)
	w.drain(t)
	Lookup(far, "")
	Lookup(far, "a1")
	Interfaces()
	if reports := w.drain(t); reports > 0 {
		t.Errorf("%d events, want none", reports)
	}
}

// Messages that the kernel dropped count as a change.
func TestOverrun(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	twoNetworks(t)
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	socket := os.NewFile(uintptr(fd), "netlink")
	defer socket.Close()
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		ip(t, fmt.Sprintf("addr add 10.2.0.%d/32 dev a0", i+1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	changed := false
	irrelevant := func([]byte) bool { return false }
	if err := readMessages(ctx, socket, irrelevant, func() { changed = true; cancel() }); err != nil || !changed {
		t.Errorf("changed %v, error %v", changed, err)
	}
}

// Lookup returns the interface that packets really leave through, and an error if they
// would not leave this machine.
func TestLookupBound(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	twoNetworks(t)
	ip(t, "route add default via 10.1.0.2 dev a1 metric 100")
	ip(t, "addr add 10.9.0.1/32 dev lo", "route add 198.51.100.0/24 dev a1 src 10.9.0.1")
	ip(t,
		"link add noroute type veth peer name x0", "link set noroute up", "link set x0 up", "addr add 10.3.0.1/32 dev noroute",
		"link add noaddress type veth peer name x1", "link set noaddress up", "link set x1 up",
		"link add nocarrier type veth peer name x2", "addr add 10.4.0.1/24 dev nocarrier", "link set nocarrier up",
		"route add default via 10.4.0.2 dev nocarrier metric 200",
		"link add isdown type veth peer name x3", "addr add 10.5.0.1/24 dev isdown")
	type want struct{ remote, iface, via, source string }
	wants := []want{
		{"192.0.2.1", "", "a0", "10.0.0.1"},
		{"192.0.2.1", "a0", "a0", "10.0.0.1"},
		{"192.0.2.1", "a1", "a1", "10.1.0.1"},
		{"::ffff:192.0.2.1", "a1", "a1", "10.1.0.1"},
		{"10.1.0.7", "", "a1", "10.1.0.1"},
		{"198.51.100.1", "", "a1", "10.9.0.1"}, // an address of lo, not of a1
		{"198.51.100.1", "a1", "a1", "10.9.0.1"},
		{"192.0.2.1", "noroute", "", ""},
		{"192.0.2.1", "noaddress", "", ""},
		{"192.0.2.1", "nocarrier", "", ""},
		{"192.0.2.1", "isdown", "", ""},
		{"192.0.2.1", "gone", "", ""},
	}
	if _, err := os.Stat("/proc/net/if_inet6"); err == nil {
		for i := range 2 {
			ip(t, fmt.Sprintf("addr add 2001:db8:%d::1/64 dev a%[1]d nodad", i),
				fmt.Sprintf("addr add fe80::%d/64 dev a%d nodad", i+1, i),
				fmt.Sprintf("route add default via 2001:db8:%d::2 dev a%[1]d metric %d", i, 100+i))
		}
		wants = append(wants,
			want{"2001:db8:9::1", "", "a0", "2001:db8::1"},
			want{"2001:db8:9::1", "a1", "a1", "2001:db8:1::1"},
			want{"2001:db8:9::1", "noroute", "", ""},
			want{"fe80::9%a1", "", "a1", "fe80::2%a1"})
	}
	for _, w := range wants {
		remote := netip.AddrPortFrom(netip.MustParseAddr(w.remote), 443)
		got, err := Lookup(remote, w.iface)
		if w.via == "" {
			if err == nil {
				t.Errorf("to %s through %s: %v, want an error", w.remote, w.iface, got)
			}
			t.Log(err)
			continue
		}
		if source := netip.MustParseAddr(w.source); err != nil || got != (Route{w.via, source}) {
			t.Errorf("to %s through %q: %v, %v, want %v", w.remote, w.iface, got, err, w)
		}
	}
	names, err := Interfaces()
	if want := []string{"a0", "a1", "noroute"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("interfaces %v, %v, want %v", names, err, want)
	}
	ip(t, "link del a0")
	if route, err := Lookup(far, ""); err != nil || route.Interface != "a1" {
		t.Errorf("without a0 through %v, %v", route, err)
	}
	ip(t, "link del a1", "link del nocarrier")
	if route, err := Lookup(far, ""); err == nil {
		t.Errorf("offline through %v", route)
	}
}

// With hundreds of interfaces, Interfaces stays fast and returns only a few of them.
func TestManyInterfaces(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	twoNetworks(t)
	const pairs = 100
	var commands []string
	for i := range pairs {
		commands = append(commands,
			fmt.Sprintf("link add c%d type veth peer name d%[1]d", i),
			fmt.Sprintf("addr add 10.8.%d.1/25 dev c%[1]d", i), fmt.Sprintf("link set c%d up", i),
			fmt.Sprintf("addr add 10.8.%d.129/25 dev d%[1]d", i), fmt.Sprintf("link set d%d up", i))
	}
	ip(t, commands...)
	const most, patience = 100 * time.Millisecond, 10 * time.Second
	best := time.Minute
	for begun := time.Now(); best > most && time.Since(begun) < patience; { // other processes have the processor too
		start := time.Now()
		names, err := Interfaces()
		if err != nil {
			t.Fatal(err)
		}
		if len(names) != MaxInterfaces || names[0] != "a0" || names[1] != "a1" {
			t.Fatalf("interfaces %v", names)
		}
		for _, name := range names {
			if _, err := Lookup(far, name); (err == nil) != (name == "a0") {
				t.Errorf("through %s: %v", name, err)
			}
		}
		best = min(best, time.Since(start))
	}
	t.Logf("all lookups take %v", best)
	if best > most {
		t.Errorf("all lookups take %v on a machine with %d interfaces, want at most %v", best, 2*pairs, most)
	}
}

// A runningWatch is a watch under test.
type runningWatch struct{ reports chan time.Time }

// startWatch starts a watch that ends with the test, and waits until it reports
// changes.
func startWatch(t *testing.T, src source) *runningWatch {
	t.Helper()
	w := &runningWatch{make(chan time.Time, 1000)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- watch(ctx, src, func(Event) { w.reports <- time.Now() }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for range 500 {
		ip(t, "addr add 10.0.0.8/24 dev a0")
		time.Sleep(10 * time.Millisecond)
		ip(t, "addr del 10.0.0.8/24 dev a0")
		if len(w.reports) > 0 {
			return w
		}
	}
	t.Fatal("no change is reported")
	return nil
}

// next waits for the next report and returns its time.
func (w *runningWatch) next(t *testing.T) time.Time {
	t.Helper()
	select {
	case at := <-w.reports:
		return at
	case <-time.After(20 * time.Second):
		t.Fatal("no report within 20 s")
		return time.Time{}
	}
}

// drain reads reports until there are no more, and returns their number.
func (w *runningWatch) drain(t *testing.T) int {
	t.Helper()
	for n := range 100 {
		select {
		case <-w.reports:
		case <-time.After(2 * reportInterval):
			return n
		}
	}
	t.Fatal("events do not end")
	return 0
}

// timeToReport makes a change and returns the time until the first report.
func (w *runningWatch) timeToReport(t *testing.T, change string) time.Duration {
	t.Helper()
	w.drain(t)
	ip(t, change)
	made := time.Now()
	return w.next(t).Sub(made)
}
