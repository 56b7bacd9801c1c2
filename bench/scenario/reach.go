//go:build linux

package scenario

import (
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/event"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/work"
)

// reach is hosts that only ssh reaches at first, and networks that block UDP. It needs root and
// an sshd, and takes four minutes.
var reach = []Scenario{
	{
		Name: "connect by ssh, host never seen", Link: far, Namespaces: true, Alone: true, Needs: program.NeedsSSH,
		Program: program.Quicterm{BySSH: true},
		Work:    work.Connect{Times: 5},
		Rivals:  []program.Program{program.SSH{}},
		Bounds:  []Bound{{Metric: "prompt", Quantile: 0.5, Rival: "ssh", Times: 1, RTTs: 1}},
	},
	{
		Name: "connect by name, daemon known", Link: far, Namespaces: true, Alone: true, Needs: program.NeedsSSH,
		Program: program.Quicterm{BySSH: true, Remembers: true},
		Work:    work.Connect{Times: 5},
		Rivals:  []program.Program{program.SSH{}},
		Bounds:  []Bound{{Metric: "prompt", Quantile: 0.5, Rival: "ssh", Times: 0.3}},
	},
	{
		Name: "connect at 30 % loss", Link: netem.Config{Delay: rtt / 2, Loss: 0.3}, Alone: true,
		Work:   work.Connect{Times: 30},
		Bounds: []Bound{{Metric: "prompt", Quantile: 0.99, Plus: 4000}},
	},
	{
		Name: "connect where UDP is blocked", Link: far, Namespaces: true, Alone: true,
		Program: noUDP,
		Work:    work.Connect{Times: 5},
		Rivals:  []program.Program{direct},
		Bounds:  []Bound{{Metric: "prompt", Quantile: 0.5, Rival: direct.Name(), Times: 1, Plus: 500}},
	},
	{
		Name: "connect where UDP is known to be blocked", Link: far, Namespaces: true, Alone: true, Needs: program.NeedsSSH,
		Program: program.Quicterm{BySSH: true, Remembers: true, Blocked: syscall.IPPROTO_UDP},
		Work:    work.Connect{Times: 5},
		Rivals:  []program.Program{known},
		Bounds:  []Bound{{Metric: "prompt", Quantile: 0.5, Rival: known.Name(), Times: 1, Plus: 100}},
	},
	{
		Name: "UDP passes again", Link: far, Namespaces: true, Interfaces: 2, Sessions: 5, Stagger: 200 * time.Millisecond,
		Program: noUDP,
		Work:    work.Carried{By: "quic", Work: exactKeys},
		Events:  event.FreeUDP(time.Second, 4*time.Second),
		Bounds: []Bound{
			{Metric: "moved", Quantile: 1, Plus: 1000},
			{Metric: "truth", Quantile: 1, RTTs: 1, Plus: 20},
			allOutput,
		},
	},
	{
		Name: "UDP is blocked in mid-session", Link: far, Namespaces: true, Sessions: 5, Stagger: 200 * time.Millisecond,
		Quick:  true,
		Work:   work.Carried{By: "tcp", Work: exactKeys},
		Events: []event.Event{event.BlockUDP(3 * time.Second)},
		Bounds: []Bound{{Metric: "back", Quantile: 1, Plus: 1500}, allOutput},
	},
	carriedBy("tcp", noUDP),
	carriedBy("ssh", program.Quicterm{BySSH: true, Daemon: map[string]string{"listen": `["127.0.0.1:4433"]`}}),
	{
		Name: "Ctrl-C behind a flood, 1 Mbit/s, TCP", Link: bloat, Namespaces: true, Sessions: 5, Quick: true,
		Program: noUDP,
		Work: work.Carried{By: "tcp", Work: work.CtrlC{
			Command: work.Flood(0), Times: 1, Lead: 4 * time.Second, Used: 2 * time.Second, Exact: true,
		}},
		Bounds: []Bound{
			{Metric: "prompt", Quantile: 0.5, RTTs: 2, Plus: 150},
			{Metric: "rate", Quantile: 0.5, Plus: 0.9, AtLeast: true}, // of 1 Mbit/s
			allOutput,
		},
	},
}

var (
	// direct reaches the daemon by its address. noUDP does so where UDP is blocked. known reaches it
	// by a name, and remembers how.
	direct = program.Quicterm{Variant: "UDP passes"}
	noUDP  = program.Quicterm{Blocked: syscall.IPPROTO_UDP}
	known  = program.Quicterm{Variant: "UDP passes", BySSH: true, Remembers: true}

	exactKeys = work.Typing{Pace: pace, Exact: true, Spans: work.Keys(40, pace)}
)

// carriedBy is typing in sessions that another transport than QUIC carries.
func carriedBy(transport string, p program.Quicterm) Scenario {
	s := Scenario{
		Name: "typing over " + transport, Link: netem.Config{Delay: rtt / 2}, Namespaces: true, Sessions: 5, Program: p,
		Work:   work.Carried{By: transport, Work: work.Typing{Pace: pace, Exact: true, Spans: work.Keys(60, pace)}},
		Bounds: []Bound{{Metric: "truth", Quantile: 0.99, RTTs: 1, Plus: 10}, allOutput},
	}
	if p.BySSH {
		s.Needs = program.NeedsSSH
	}
	return s
}
