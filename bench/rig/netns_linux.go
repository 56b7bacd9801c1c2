package rig

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
)

// A Namespace is a network namespace that lasts as long as the test.
type Namespace struct {
	T    T
	Name string
}

var namespaces atomic.Int64

// CanNamespace reports why network namespaces cannot be made here, or nil.
func CanNamespace() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("network namespaces need the command ip (Debian package iproute2): %w", err)
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return fmt.Errorf("network emulation needs TUN devices: %w", err)
	}
	name := fmt.Sprintf("qt-%d-%d", os.Getpid(), namespaces.Add(1))
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		return fmt.Errorf("network namespaces are not permitted: %s", strings.TrimSpace(string(out)))
	}
	return exec.Command("ip", "netns", "del", name).Run()
}

// NewNamespace makes a namespace with its loopback interface up.
func NewNamespace(t T) *Namespace {
	t.Helper()
	n := &Namespace{T: t, Name: fmt.Sprintf("qt-%d-%d", os.Getpid(), namespaces.Add(1))}
	IP(t, "netns", "add", n.Name)
	t.Cleanup(func() { exec.Command("ip", "netns", "del", n.Name).Run() })
	n.IP("link", "set", "lo", "up")
	return n
}

// IP runs ip(8) in this process's namespace.
func IP(t T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// IP runs ip(8) in the namespace.
func (n *Namespace) IP(args ...string) {
	n.T.Helper()
	IP(n.T, append([]string{"-n", n.Name}, args...)...)
}

// Batch runs ip(8) once in the namespace for several commands.
func (n *Namespace) Batch(commands ...string) {
	n.T.Helper()
	cmd := exec.Command("ip", "-n", n.Name, "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n"))
	if out, err := cmd.CombinedOutput(); err != nil {
		n.T.Fatalf("ip, %s: %v: %s", strings.Join(commands, ", "), err, out)
	}
}

// Take moves an interface here, gives it addresses and sets it up.
func (n *Namespace) Take(name string, addresses ...string) {
	n.T.Helper()
	IP(n.T, "link", "set", name, "netns", n.Name)
	for _, a := range addresses {
		args := []string{"addr", "add", a, "dev", name}
		if strings.Contains(a, ":") {
			args = append(args, "nodad")
		}
		n.IP(args...)
	}
	n.IP("link", "set", name, "up")
}

// Hosts sets the hosts file of programs in the namespace: lines of hosts(5).
func (n *Namespace) Hosts(lines string) {
	n.T.Helper()
	dir := "/etc/netns/" + n.Name // ip-netns(8) mounts its files over /etc
	n.T.Cleanup(func() {
		os.RemoveAll(dir)
		os.Remove("/etc/netns") // unless it has other entries
	})
	var err error
	for range 3 { // another cleanup may remove the folder before it is used
		if err = os.MkdirAll(dir, 0o755); err == nil {
			err = os.WriteFile(dir+"/hosts", []byte(lines), 0o644)
		}
		if err == nil {
			return
		}
	}
	n.T.Fatal(err)
}

// In changes a command so that it runs in the namespace.
func (n *Namespace) In(cmd *exec.Cmd) *exec.Cmd {
	ip, err := exec.LookPath("ip")
	if err != nil {
		n.T.Fatal(err)
	}
	cmd.Args = append([]string{"ip", "netns", "exec", n.Name, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = ip
	return cmd
}
