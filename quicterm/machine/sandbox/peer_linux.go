// Package sandbox tells whether a process at the other end of a unix socket is in a sandbox, which others are not in.
package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A confinement is what the kernel tells of what a process may do. Nothing in it can be
// undone by the process. Limits of a control group are no part of it: every login has some.
type confinement struct {
	noNewPrivs bool
	seccomp    int // mode
	filters    int // of seccomp; 0 before Linux 5.9
	bounding   uint64
	namespaces [len(namespaceNames)]string
	root       os.FileInfo
}

// namespaceNames are the namespaces that containers and sandboxes are made of.
var namespaceNames = [...]string{"user", mounts: "mnt", "pid", "net"}

const mounts = 1 // index of the namespace of mounts

// CheckPeer refuses the process at the other end of a connection if it may do less than a session that this
// process starts for it: a session would get it out of a sandbox. It compares with this process, and not with what is
// usual, because both may run in one container. Sessions that are started outside have the mounts of process 1.
func CheckPeer(c *net.UnixConn, outside bool) error {
	process, err := peerProcess(c)
	if err != nil {
		return err
	}
	defer process.fd.Close()
	if err := process.check(); err != nil {
		return err
	}
	peer, err := readConfinement(strconv.Itoa(process.number))
	if err != nil {
		return fmt.Errorf("process at the other end: %w", err)
	}
	own, err := readConfinement("self")
	if err == nil && outside {
		var first confinement
		first, err = readConfinement("1")
		own.root, own.namespaces[mounts] = first.root, first.namespaces[mounts]
	}
	if err != nil {
		return err
	}
	// Only now is it certain that the number was not another process's meanwhile.
	if err := process.check(); err != nil {
		return err
	}
	if what := peer.beyond(own); what != "" {
		return fmt.Errorf("no grant for a process in a sandbox: it has %s; ask outside of it, or log in with a key", what)
	}
	return nil
}

// A peer is the process that has made a connection.
type peer struct {
	number int
	fd     *os.File // refers to it; nil before Linux 5.3
}

func peerProcess(c *net.UnixConn) (p peer, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return p, err
	}
	var fd int
	var fdErr error
	if err := raw.Control(func(socket uintptr) {
		var cred *unix.Ucred
		if cred, fdErr = unix.GetsockoptUcred(int(socket), unix.SOL_SOCKET, unix.SO_PEERCRED); fdErr != nil {
			return
		}
		p.number = int(cred.Pid)
		fd, fdErr = unix.GetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		if errors.Is(fdErr, unix.ENOPROTOOPT) {
			fd, fdErr = unix.PidfdOpen(p.number, 0) // before Linux 6.5
		}
	}); err != nil {
		return p, err
	}
	if errors.Is(fdErr, unix.ENOSYS) {
		return p, nil
	}
	if fdErr != nil {
		return p, fmt.Errorf("process at the other end: %w", fdErr)
	}
	unix.CloseOnExec(fd)
	p.fd = os.NewFile(uintptr(fd), "pidfd")
	return p, nil
}

// check fails if the number is not the process's: it has ended, or it is in a PID namespace
// of which this process sees nothing.
func (p peer) check() error {
	number := p.number
	if p.fd != nil {
		info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(p.fd.Fd())))
		if err != nil {
			return err
		}
		if number, err = strconv.Atoi(field(string(info), "Pid")); err != nil {
			return fmt.Errorf("process at the other end: %w", err)
		}
	}
	if number <= 0 || number != p.number {
		return errors.New("the process at the other end has ended, or is in another PID namespace")
	}
	return nil
}

// field returns the value of a line such as "Name:\tvalue" of a file in /proc.
func field(content, name string) string {
	for line := range strings.Lines(content) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func readConfinement(pid string) (c confinement, err error) {
	dir := "/proc/" + pid + "/"
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return c, err
	}
	// What a kernel does not tell of this process, it does not tell of the other.
	c.noNewPrivs = field(string(status), "NoNewPrivs") == "1"
	c.seccomp, _ = strconv.Atoi(field(string(status), "Seccomp"))
	c.filters, _ = strconv.Atoi(field(string(status), "Seccomp_filters"))
	c.bounding, _ = strconv.ParseUint(field(string(status), "CapBnd"), 16, 64)
	for i, name := range namespaceNames {
		c.namespaces[i], err = os.Readlink(dir + "ns/" + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
	}
	c.root, err = os.Stat(dir + "root")
	return c, err
}

// beyond returns what confines a process and not another one, in words, or nothing.
func (c confinement) beyond(other confinement) string {
	switch {
	case c.noNewPrivs && !other.noNewPrivs:
		return "no_new_privs"
	case c.seccomp != other.seccomp && c.seccomp != 0, c.filters > other.filters:
		return "a seccomp filter"
	case other.bounding&^c.bounding != 0:
		return "fewer capabilities in its bounding set"
	case !os.SameFile(c.root, other.root):
		return "another root directory"
	}
	for i, name := range namespaceNames {
		if c.namespaces[i] != other.namespaces[i] {
			return "another " + name + " namespace"
		}
	}
	return ""
}
