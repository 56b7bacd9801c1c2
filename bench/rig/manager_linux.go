package rig

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A manager stands in for systemd: it keeps a daemon's sockets, and passes them to the next one.
type manager struct {
	t      T
	socket *net.UnixConn
	path   string
	names  []string   // of the sockets that it keeps
	kept   []*os.File // the sockets
}

// Manage makes daemons that are started from now on the services of a manager, which keeps their
// sockets for the next one. Start then waits until it has a socket of each kind.
func (h *Host) Manage() {
	h.T.Helper()
	m := &manager{t: h.T, path: h.Path("notify")}
	var err error
	if m.socket, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"}); err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() {
		m.socket.Close()
		for _, f := range m.kept {
			f.Close()
		}
	})
	h.In = m
}

// Restart ends the daemon as its manager does, and starts the next one.
func (h *Host) Restart() {
	h.T.Helper()
	h.Stop(syscall.SIGTERM)
	h.Start()
}

// In implements [Host.In]. LISTEN_PID must be the process id of the daemon, which the shell becomes.
func (m *manager) In(cmd *exec.Cmd) *exec.Cmd {
	args := append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`}, cmd.Args...)
	cmd = exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+m.path)
	if m.kept != nil {
		cmd.Env = append(cmd.Env, fmt.Sprintf("LISTEN_FDS=%d", len(m.kept)), "LISTEN_FDNAMES="+strings.Join(m.names, ":"))
		cmd.ExtraFiles = m.kept
	}
	return cmd
}

// await receives what the daemon tells, until it is ready and a UDP and a TCP socket are kept.
func (m *manager) await() {
	m.t.Helper()
	m.socket.SetReadDeadline(time.Now().Add(Patience))
	for ready := false; !ready || len(m.kept) < 2; {
		b, oob := make([]byte, 4096), make([]byte, 128)
		n, oobn, _, _, err := m.socket.ReadMsgUnix(b, oob)
		if err != nil {
			m.t.Fatal(err)
		}
		for line := range strings.Lines(string(b[:n])) {
			line = strings.TrimSpace(line)
			ready = ready || line == "READY=1"
			if name, ok := strings.CutPrefix(line, "FDNAME="); ok {
				m.names = append(m.names, name)
			}
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			m.t.Fatal(err)
		}
		for _, message := range messages {
			fds, err := unix.ParseUnixRights(&message)
			if err != nil || len(fds) != 1 {
				m.t.Fatalf("%d descriptors, %v; want 1", len(fds), err)
			}
			m.kept = append(m.kept, os.NewFile(uintptr(fds[0]), "kept"))
		}
	}
}
