//go:build linux

package scenario

import (
	"time"

	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/work"
)

// attacks is what others get while hostile clients or accounts do their worst. A row is an
// attack, a work that is done meanwhile, and the bounds of the work's figures.
var attacks = []Scenario{
	{
		Name: "1000 silent connections of 50 sources, connect", Link: far, Alone: true,
		Program: attacked,
		Work:    work.Attacked{Attack: silence, Work: work.Connect{Times: 9}},
		Bounds:  []Bound{{Metric: "prompt", Quantile: 1, Plus: 2000}},
	},
	{
		Name: "1000 silent connections of 50 sources, return", Alone: true,
		Program: attacked,
		Work:    work.Attacked{Attack: silence, Work: work.Returning{Clients: 10, Outage: 3 * time.Second}},
		Bounds:  []Bound{{Metric: "back", Quantile: 1, Plus: 400}},
	},
	{
		Name: "hostile account", Link: far, Sessions: 4, Alone: true, Needs: work.NeedsRoot,
		Program: attacked, Rivals: []program.Program{notAttacked},
		Work: work.Attacked{
			Attack: work.Attack{What: "hostile", Sockets: 400, Sources: 50, Connections: 400},
			Work:   work.Typing{Pace: 40 * time.Millisecond, Spans: work.Keys(150, 40*time.Millisecond)},
		},
		Bounds: []Bound{
			{Metric: "truth", Quantile: 0.99, Rival: notAttacked.Name(), Times: 1.2},
			{Metric: "daemon growth", Quantile: 1, Plus: 64},
		},
	},
	{
		Name: "home that does not answer", Link: far, Alone: true, Needs: rig.CanHang,
		Program: program.HungHome{Quicterm: attacked},
		Rivals:  []program.Program{program.HungHome{Quicterm: notAttacked}},
		Work: work.Attacked{
			Attack: work.Attack{What: "hung", Sources: 50, Connections: 200},
			Work:   work.Connect{Times: 9},
		},
		Bounds: []Bound{
			{Metric: "prompt", Quantile: 0.5, Rival: notAttacked.Name(), Times: 1.2},
			{Metric: "children", Quantile: 1, Plus: 16},
			{Metric: "daemon threads", Quantile: 1, Plus: 16},
		},
	},
}

var silence = work.Attack{What: "silent", Sources: 50, Connections: 1000}

// attacked has the default settings that limit attackers. Beside it, notAttacked is measured
// without the attack. SHLVL keeps a login shell that is bash from reading the account's .bashrc,
// which may run more programs than a login does.
var (
	attacked = program.Quicterm{
		Daemon:   map[string]string{"max_unauthenticated": "256", "max_sessions_per_user": "100", "accept_env": shlvl},
		Settings: map[string]string{"send_env": shlvl},
	}
	notAttacked = program.Quicterm{Variant: "not attacked", Daemon: attacked.Daemon, Settings: attacked.Settings}
)

const shlvl = `["TERM", "SHLVL"]`
