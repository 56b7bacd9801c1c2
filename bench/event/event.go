//go:build linux

// Package event lists what can happen to the clients, their networks and the server of a
// scenario.
package event

import (
	"os"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/topology"
)

// An Event happens at a time: to each client, or once to the server.
type Event struct {
	At   time.Duration // since the work began
	What string

	Client func(c Client)    // nil if it happens to the server
	Server func(h *rig.Host) // nil if it happens to clients
	Ends   bool              // the disturbance is over: sessions are to recover from here on
}

// A Client is what an event happens to.
type Client struct {
	*topology.Machine
	Number  int          // of the client, from 0
	Usual   netem.Config // of its links
	Process *os.Process
}

// Readdress gives clients other addresses.
func Readdress(at time.Duration) Event {
	return Event{At: at, What: "another address", Ends: true, Client: func(c Client) { c.Links[0].Readdress() }}
}

// ForgetNAT makes NATs forget clients.
func ForgetNAT(at time.Duration) Event {
	return Event{At: at, What: "the NAT forgets", Ends: true, Client: func(c Client) { c.Links[0].Forget() }}
}

// BlackHole lets all links drop everything for a time. The system sees no event.
func BlackHole(from, until time.Duration) []Event {
	return []Event{
		{At: from, What: "black hole", Client: func(c Client) { c.Set(blackHole(c.Usual)) }},
		{At: until, What: "link is back", Ends: true, Client: func(c Client) { c.Set(c.Usual) }},
	}
}

func blackHole(cfg netem.Config) netem.Config {
	cfg.Down = true
	return cfg
}

// Delays gives all links other delays, one after the other.
func Delays(every time.Duration, delays ...time.Duration) (events []Event) {
	for i, d := range delays {
		events = append(events, Event{At: time.Duration(i+1) * every, What: "delay " + d.String(), Client: func(c Client) {
			cfg := c.Usual
			cfg.Delay = d
			c.Set(cfg)
		}})
	}
	return events
}

// FirstBlackHole lets the first interface drop everything, which the system does not see.
func FirstBlackHole(at time.Duration) Event {
	return Event{At: at, What: "black hole", Ends: true, Client: func(c Client) { c.Links[0].Set(blackHole(c.Usual)) }}
}

// FirstDown takes the first interface down.
func FirstDown(at time.Duration) Event {
	return Event{At: at, What: "interface down", Ends: true, Client: func(c Client) { c.Interface(0).Down() }}
}

// AllDown takes all interfaces down for a time.
func AllDown(from, until time.Duration) []Event {
	return []Event{
		{At: from, What: "interfaces down", Client: eachInterface((*topology.Interface).Down)},
		{At: until, What: "interfaces up", Ends: true, Client: eachInterface((*topology.Interface).Up)},
	}
}

func eachInterface(do func(*topology.Interface)) func(c Client) {
	return func(c Client) {
		for i := range c.Links {
			do(c.Interface(i))
		}
	}
}

// EitherFails lets one of two interfaces fail: which, and how, depends on the client.
func EitherFails(at time.Duration) Event {
	return Event{At: at, What: "a path fails", Ends: true, Client: func(c Client) {
		switch f := c.Interface(c.Number / 2 % 2); c.Number % 2 {
		case 0:
			f.Down()
		default:
			f.Set(blackHole(c.Usual))
		}
	}}
}

// SwitchToIPv6 removes IPv4 from all interfaces and adds IPv6.
func SwitchToIPv6(at time.Duration) Event {
	return Event{At: at, What: "IPv6 only", Ends: true, Client: eachInterface((*topology.Interface).SwitchToIPv6)}
}

// BlockUDP makes the networks of clients drop UDP packets. The system sees no event.
func BlockUDP(at time.Duration) Event {
	return Event{At: at, What: "UDP blocked", Ends: true, Client: func(c Client) { c.Block(syscall.IPPROTO_UDP) }}
}

// FreeUDP lets networks that block UDP pass it again when the second interface, which is down for
// a time, comes up: that is what the system sees.
func FreeUDP(from, until time.Duration) []Event {
	return []Event{
		{At: from, What: "second interface down", Client: func(c Client) { c.Interface(1).Down() }},
		{At: until, What: "UDP passes, second interface up", Ends: true, Client: func(c Client) {
			c.Block(0)
			c.Interface(1).Up()
		}},
	}
}

// Sleep stops the client processes for a time, and lets them wake with other addresses.
func Sleep(from, until time.Duration) []Event {
	return []Event{
		{At: from, What: "sleep", Client: func(c Client) { c.Process.Signal(syscall.SIGSTOP) }},
		{At: until, What: "wake", Ends: true, Client: func(c Client) {
			c.Links[0].Readdress()
			c.Process.Signal(syscall.SIGCONT)
		}},
	}
}

// KillDaemon kills the daemon and starts another after a time. Before that it calls
// meanwhile, which may be nil.
func KillDaemon(from, until time.Duration, meanwhile func(h *rig.Host)) []Event {
	return []Event{
		{At: from, What: "daemon killed", Server: func(h *rig.Host) {
			h.Stop(syscall.SIGKILL)
			if meanwhile != nil {
				meanwhile(h)
			}
		}},
		{At: until, What: "daemon started", Ends: true, Server: func(h *rig.Host) { h.Start() }},
	}
}

// Manage restarts the daemon as the service of a manager, which keeps its sockets from then on.
func Manage(at time.Duration) Event {
	return Event{At: at, What: "a manager starts the daemon", Server: func(h *rig.Host) {
		h.Manage()
		h.Restart()
	}}
}

// Restart makes the manager restart the daemon.
func Restart(at time.Duration) Event {
	return Event{At: at, What: "daemon restarted", Ends: true, Server: func(h *rig.Host) { h.Restart() }}
}

// TrainRide is what a client with WiFi and LTE meets on a train, in a minute: WiFi that goes silent without an event, an
// LTE whose NAT forgets it, a restart of the daemon, nothing at all for 20 s, and WiFi with another address.
func TrainRide() []Event {
	return []Event{
		{At: 4 * time.Second, What: "WiFi silent", Client: func(c Client) { c.Interface(0).Set(blackHole(c.Usual)) }},
		{At: 7 * time.Second, What: "WiFi down", Client: func(c Client) { c.Interface(0).Down() }},
		{At: 12 * time.Second, What: "the NAT of LTE forgets", Client: func(c Client) { c.Interface(1).Forget() }},
		{At: 16 * time.Second, What: "daemon restarted", Server: func(h *rig.Host) {
			if h.Daemon != nil { // the program has one of quicterm's
				h.Stop(syscall.SIGKILL)
				h.Start()
			}
		}},
		{At: 22 * time.Second, What: "tunnel", Client: func(c Client) { c.Interface(1).Set(blackHole(c.Usual)) }},
		{At: 42 * time.Second, What: "WiFi, another address", Ends: true, Client: func(c Client) {
			c.Interface(0).Set(c.Usual)
			c.Interface(0).Up()
			c.Interface(0).Readdress()
		}},
	}
}
