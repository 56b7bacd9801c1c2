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
		name: "typing, 5 % loss", link: lossy(0.05), sessions: 10, work: fiveASecond,
		bounds: []bound{{metric: "truth", quantile: 0.99, rtts: 1.3}},
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
		name: "outage of 30 s while output runs", link: far, sessions: 2, work: output{lasts: 36 * time.Second, rate: 20_000, late: 20 * time.Second},
		events: out(3*time.Second, 33*time.Second),
		bounds: []bound{
			{metric: "complete", quantile: 0, plus: 1, atLeast: true},
			{metric: "back", quantile: 1, rtts: 4},
		},
	},
	{
		name: "Ctrl-C behind a flood, 1 Mbit/s", link: bloat, sessions: 10,
		work: ctrlC{command: incompressible, times: 1, lead: 4 * time.Second, used: 2 * time.Second},
		bounds: []bound{
			{metric: "prompt", quantile: 0.5, rtts: 2, plus: 40},
			{metric: "rate", quantile: 0.5, plus: 0.9, atLeast: true},
		},
	},
	{
		name: "Ctrl-C behind yes, 1 Mbit/s", link: bloat, work: ctrlC{command: yes, times: 5, used: 2 * time.Second},
		bounds: []bound{{metric: "prompt", quantile: 0.5, rtts: 2, plus: 40}},
	},
	{
		name: "compiler log, 2 Mbit/s", link: netem.Config{Delay: feelRTT / 2, Rate: 2_000_000, Queue: bloated},
		work:   cat{size: 10_000_000, times: 1, limit: time.Minute},
		bounds: []bound{{metric: "rate", quantile: 0.5, plus: 4 * 0.25, atLeast: true}},
	},
	{
		name: "50 MB of text, no limit", work: cat{size: 50_000_000, times: 3, limit: time.Minute},
	},
	{
		name: "idle", link: far, sessions: 2, work: idle{warm: 5 * time.Second, rest: 30 * time.Second},
		bounds: []bound{{metric: "wire", quantile: 1, plus: 30}},
	},
}

var far = netem.Config{Delay: feelRTT / 2}

// bloat is a slow link with a deep queue before it.
var bloat = netem.Config{Delay: feelRTT / 2, Rate: slowRate, Queue: bloated}

func lossy(share float64) netem.Config {
	cfg := far
	cfg.Loss = share
	return cfg
}

var (
	fiveASecond    = keystrokes{keys: 80, pace: feelPace}
	whileItHappens = keystrokes{keys: 60, pace: feelPace}
)
