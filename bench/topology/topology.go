//go:build linux

// Package topology lays out where a scenario runs: one server, and machines of clients,
// each behind emulated links of its own. Everything that a topology makes ends with its
// measurement.
package topology

import (
	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A Topology is where a program's server and clients run.
type Topology interface {
	// Host is the server: its keys and folders, and where its daemon listens.
	Host() *rig.Host

	// Machine returns machine number n, from 0, whose links all have this configuration.
	// The server runs by then.
	Machine(t *measure.T, n int, link netem.Config) *Machine
}

// Options are what a topology is made from.
type Options struct {
	Seed       uint64 // of the links' losses
	Interfaces int    // of each machine, 1 or 2; 0 means 1
	DualStack  bool   // the server is known by a name with addresses of both IP versions
}

// A Link is the network between a machine and the server. Its methods may be called at
// any time and concurrently.
type Link interface {
	// Set changes what happens to packets from now on, in both directions.
	Set(cfg netem.Config)

	// Readdress gives the machine another address. Forget makes the NAT forget the
	// machine. Both return when that has happened.
	Readdress()
	Forget()

	// Counters count what was offered, lost or not, with the headers of IP.
	Counters() (up, down netem.Counters)

	// Arrived returns how many bytes arrived at the server and at the machine, as the
	// link's rate counts them.
	Arrived() (up, down uint64)
}

// A Machine is where a client runs.
type Machine struct {
	Links     []Link         // none if packets are to pass as they are
	Namespace *rig.Namespace // nil means this process's
	Server    string         // name or address of the server as seen from here
	Port      uint16         // of quicterm's daemon there
}

// Set changes all links.
func (m *Machine) Set(cfg netem.Config) {
	for _, l := range m.Links {
		l.Set(cfg)
	}
}

// Counters returns the sums over all links.
func (m *Machine) Counters() (up, down netem.Counters) {
	for _, l := range m.Links {
		u, d := l.Counters()
		up.Add(u)
		down.Add(d)
	}
	return up, down
}

// Received returns how many bytes arrived at the machine over all links.
func (m *Machine) Received() (bytes uint64) {
	for _, l := range m.Links {
		_, down := l.Arrived()
		bytes += down
	}
	return bytes
}

// Interface returns interface number i of a machine in a namespace.
func (m *Machine) Interface(i int) *Interface { return m.Links[i].(*Interface) }

// Block makes the networks of a machine in a namespace drop the packets of a protocol silently. 0 passes all.
func (m *Machine) Block(protocol byte) {
	for i := range m.Links {
		m.Interface(i).Block(protocol)
	}
}
