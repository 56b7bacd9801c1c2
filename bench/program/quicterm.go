//go:build linux

package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/topology"
)

// Quicterm is qt and qtd as they are released.
type Quicterm struct {
	Variant  string            // what is special about it, as its name says
	Flags    []string          // of qt connect
	Settings map[string]string // of the client, as TOML
	Daemon   map[string]string // settings of the daemon, as TOML

	BySSH     bool // clients know a host only by ssh's configuration
	Remembers bool // and remember how they have reached its daemon
	Blocked   byte // a protocol that the networks of clients block, such as syscall.IPPROTO_UDP, or 0
	Cubic     bool // the server has no congestion control for TCP but the usual one
	Predicts  bool // clients show typed keys at once, as the usual setting says; else only what the server sends
}

// daemonSettings are for clients that all come at once and may stay away for long.
var daemonSettings = map[string]string{
	"log_level":             `"info"`,
	"detached_ttl":          `"1h"`,
	"max_unauthenticated":   "1000",
	"max_sessions_per_user": "1000",
}

func (q Quicterm) Name() string {
	if q.Variant == "" {
		return "quicterm"
	}
	return "quicterm, " + q.Variant
}

func (Quicterm) Missing() string { return "" }

func (q Quicterm) Serve(t *measure.T, on topology.Topology) Server {
	h := on.Host()
	if q.Cubic {
		on.(*topology.Namespaces).Server.Batch("route replace default dev eth0 congctl lock cubic")
	}
	maps.Copy(h.Settings, daemonSettings)
	maps.Copy(h.Settings, q.Daemon)
	if !q.Predicts {
		h.Client["predict"] = `"never"`
	}
	maps.Copy(h.Client, q.Settings)
	h.Start()
	s := quictermServer{Quicterm: q, host: h}
	if q.BySSH {
		s.config = serveBySSH(t, on.(*topology.Namespaces))
	}
	return s
}

// serveBySSH starts an sshd whose logins find qtd, and returns the file of ssh's configuration by
// which clients know the host as byName.
func serveBySSH(t *measure.T, on *topology.Namespaces) (config string) {
	h := on.Host()
	h.Write("remote/qtd", fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" --config %s\n", filepath.Join(h.Bin, "qtd"),
		h.Path("qtd.toml")))
	if err := os.Chmod(h.Path("remote/qtd"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The shell of the session reads the user's startup files, as that of a login by ssh does. They
	// may be slow here: they are not in the HOME of the other shell, which starts qtd.
	d := sshdIn(t, on, "-o", fmt.Sprintf("SetEnv=PATH=%s:%s HOME=%s", h.Path("remote"), os.Getenv("PATH"),
		h.Path("remote")))
	lines := []string{"Host " + byName, "HostName=" + d.addr.Addr().String(), "User=" + d.user}
	h.Write("ssh_config", strings.Join(append(lines, d.options()...), "\n")+"\n")
	return h.Path("ssh_config")
}

// byName is the name of the server in ssh's configuration.
const byName = "server"

// NeedsSSH reports why scenarios with clients BySSH cannot be measured here, or nil.
func NeedsSSH() error { return Needs()() }

// Needs returns a func that reports which of some commands, ssh and sshd this machine lacks, or nil.
func Needs(commands ...string) func() error {
	return func() error {
		if why := notInstalled(append(commands, "ssh", sshdPath)...); why != "" {
			return errors.New(why)
		}
		return nil
	}
}

type quictermServer struct {
	Quicterm
	host   *rig.Host
	config string // of ssh, if clients are BySSH
}

func (s quictermServer) Command(m *topology.Machine, shell string) *exec.Cmd {
	return s.connect(m, append([]string{"-t"}, s.Flags...), shell)
}

func (s quictermServer) Pipe(m *topology.Machine, shell string) *exec.Cmd {
	return s.connect(m, s.Flags, shell)
}

func (s quictermServer) connect(m *topology.Machine, flags []string, shell string) *exec.Cmd {
	if s.Blocked != 0 {
		m.Block(s.Blocked)
	}
	if !s.BySSH {
		return s.host.To(m.Server, m.Port, "connect", flags, shell)
	}
	cmd := s.host.Named(byName, s.config, "connect", flags, shell)
	state := "/dev/null" // nothing can be kept there
	if s.Remembers {
		state = s.host.Path("client-state")
	}
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+state)
	return cmd
}

func (s quictermServer) Remembered() bool {
	_, err := os.Stat(s.host.Path("client-state/quicterm/reached.json"))
	return !s.Remembers || err == nil
}

// Processes are the daemon and the holders.
func (s quictermServer) Processes(t *measure.T) []int {
	return slices.DeleteFunc(measure.Family(s.host.Daemon.Process.Pid), func(pid int) bool {
		exe, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		return exe != filepath.Join(s.host.Bin, "qtd")
	})
}

// Resent asks qt status. What it counts as sent is in QUIC packets.
func (s quictermServer) Resent(t *measure.T, clients []int) (resent, sent int) {
	for _, r := range s.status(t, clients) {
		resent += r.ResentBytes
		for _, p := range r.Paths {
			sent += p.Sent
		}
	}
	return resent, sent
}

// Transports asks qt status.
func (s quictermServer) Transports(t *measure.T, clients []int) []string {
	transports := make([]string, len(clients))
	for _, r := range s.status(t, clients) {
		for _, p := range r.Paths {
			if p.State == "live" {
				transports[slices.Index(clients, r.PID)] = p.Transport
			}
		}
	}
	return transports
}

// A report is what qt status says of a client.
type report struct {
	PID         int `json:"pid"`
	ResentBytes int `json:"resent_bytes"`
	Paths       []struct {
		Transport string `json:"transport"`
		State     string `json:"state"`
		Sent      int    `json:"sent_bytes"`
	} `json:"paths"`
}

// status returns the reports of some clients.
func (s quictermServer) status(t *measure.T, clients []int) []report {
	out, err := exec.Command(filepath.Join(s.host.Bin, "qt"), "status", "--json").Output()
	if err != nil {
		t.Fatalf("qt status: %v", err)
	}
	var reports []report
	if err := json.Unmarshal(out, &reports); err != nil {
		t.Fatalf("qt status: %v", err)
	}
	reports = slices.DeleteFunc(reports, func(r report) bool { return !slices.Contains(clients, r.PID) })
	if len(reports) < len(clients) {
		t.Fatalf("qt status shows %d of %d clients", len(reports), len(clients))
	}
	return reports
}
