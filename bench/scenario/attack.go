//go:build linux

package scenario

import (
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/work"
)

// attacks is what others get while hostile clients or accounts do their worst. A row is an
// attack, a work that is done meanwhile, and the bounds of the work's figures.
var attacks = []Scenario{
	{
		Name: "1000 silent connections of 50 sources", Link: far, Alone: true,
		Program: program.Quicterm{Daemon: defaultAdmission},
		Work: work.Attacked{
			Attack: work.Silent{Sources: 50, Connections: 1000},
			Work:   work.Newcomers{Times: 9},
		},
		Bounds: []Bound{
			{Metric: "resume", Quantile: 1, RTTs: 2, Plus: 200},
			{Metric: "login", Quantile: 1, Plus: 2000},
		},
	},
}

// defaultAdmission are settings of a daemon that is attacked.
var defaultAdmission = map[string]string{"max_unauthenticated": "256"}
