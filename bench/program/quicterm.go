//go:build linux

package program

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

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
	maps.Copy(h.Settings, daemonSettings)
	maps.Copy(h.Settings, q.Daemon)
	maps.Copy(h.Client, q.Settings)
	h.Start()
	return quictermServer{h, q.Flags}
}

type quictermServer struct {
	host  *rig.Host
	flags []string
}

func (s quictermServer) Command(m *topology.Machine, shell string) *exec.Cmd {
	return s.host.To(m.Server, m.Port, "connect", append([]string{"-t"}, s.flags...), shell)
}

func (s quictermServer) Pipe(m *topology.Machine, shell string) *exec.Cmd {
	return s.host.To(m.Server, m.Port, "connect", s.flags, shell)
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
	out, err := exec.Command(filepath.Join(s.host.Bin, "qt"), "status", "--json").Output()
	if err != nil {
		t.Fatalf("qt status: %v", err)
	}
	var reports []struct {
		PID         int `json:"pid"`
		ResentBytes int `json:"resent_bytes"`
		Paths       []struct {
			Sent int `json:"sent_bytes"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(out, &reports); err != nil {
		t.Fatalf("qt status: %v", err)
	}
	found := 0
	for _, r := range reports {
		if !slices.Contains(clients, r.PID) {
			continue
		}
		found++
		resent += r.ResentBytes
		for _, p := range r.Paths {
			sent += p.Sent
		}
	}
	if found < len(clients) {
		t.Fatalf("qt status shows %d of %d clients", found, len(clients))
	}
	return resent, sent
}
