//go:build linux

package main

import (
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// scenarios are all that is measured, in the order of the table. Their round trip is
// 100 ms where they do not say another one.
var scenarios = []scenario{
	{
		name: "typing, no loss", link: far, sessions: 10, work: fiveASecond, quick: true,
		bounds: []bound{
			{metric: "truth", quantile: 0.5, rtts: 1, plus: 10},
			{metric: "wire", quantile: 1, plus: 1600},
		},
	},
	{
		name: "typing, 29 % loss", link: lossy(0.29), sessions: 10, work: fiveASecond, quick: true,
		bounds: []bound{
			{metric: "truth", quantile: 0.5, rtts: 1, plus: 10},
			{metric: "truth", quantile: 0.9, rtts: 1.4},
			{metric: "truth", quantile: 0.99, rtts: 2},
			{metric: "truth", quantile: 1, rtts: 4},
		},
	},
	{
		name: "another address", link: far, sessions: 5, work: whileItHappens, quick: true,
		events: []event{readdressed(5 * time.Second)},
		bounds: []bound{{metric: "back", quantile: 0.5, rtts: 2, plus: 50}},
	},
	{
		name: "the NAT forgets", link: far, sessions: 5, work: whileItHappens,
		events: []event{forgotten(5 * time.Second)},
		bounds: []bound{{metric: "back", quantile: 0.5, rtts: 2, plus: 50}},
	},
	{
		name: "black hole of 3 s", link: far, sessions: 5, work: whileItHappens,
		events: out(4*time.Second, 7*time.Second),
		bounds: []bound{{metric: "back", quantile: 0.5, rtts: 2, plus: 50}},
	},
	{
		name: "idle", link: far, sessions: 2, work: idle{warm: 5 * time.Second, rest: 30 * time.Second},
		bounds: []bound{{metric: "wire", quantile: 1, plus: 30}},
	},
}

var far = netem.Config{Delay: feelRTT / 2}

func lossy(share float64) netem.Config {
	cfg := far
	cfg.Loss = share
	return cfg
}

var (
	fiveASecond    = keystrokes{keys: 80, pace: feelPace}
	whileItHappens = keystrokes{keys: 60, pace: feelPace}
)
