//go:build linux

package main

import (
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// scenarios are all that is played, in the order of the table. The round trip is 100 ms
// where a link does not say another one. Bounds in ms are some round trips and a
// constant.
var scenarios = []scenario{
	{
		name: "typing, no loss", link: far, sessions: 10, work: fiveASecond, quick: true,
		bounds: []bound{
			{metric: "truth", quantile: 0.5, rtts: 1, plus: 10},
			{metric: "truth", quantile: 0.99, rtts: 1.2},
			{metric: "wire", quantile: 1, plus: 1600 + countBytes},
		},
	},
	{
		name: "typing, 1 % loss", link: lossy(0.01), sessions: 10, work: fiveASecond,
		bounds: []bound{
			{metric: "truth", quantile: 0.5, rtts: 1, plus: 10},
			{metric: "truth", quantile: 0.9, rtts: 1.1},
			{metric: "truth", quantile: 0.99, rtts: 2.5}, // the first resend comes after the answer is overdue
		},
	},
	{
		name: "typing, 5 % loss", link: lossy(0.05), sessions: 10, work: fiveASecond,
		bounds: []bound{
			{metric: "truth", quantile: 0.5, rtts: 1, plus: 10},
			{metric: "truth", quantile: 0.99, rtts: 1.3},
		},
	},
	{
		name: "typing, 10 % loss", link: lossy(0.10), sessions: 10, work: fiveASecond,
		bounds: []bound{
			{metric: "truth", quantile: 0.5, rtts: 1, plus: 10},
			{metric: "truth", quantile: 0.99, rtts: 1.5},
		},
	},
	{
		name: "typing, 29 % loss", link: lossy(0.29), sessions: 10, work: fiveASecond, quick: true,
		bounds: []bound{
			{metric: "truth", quantile: 0.5, rtts: 1, plus: 10},
			{metric: "truth", quantile: 0.9, rtts: 1.4},
			{metric: "truth", quantile: 0.99, rtts: 2},
			{metric: "truth", quantile: 1, rtts: 4},
			{metric: "wire", quantile: 1, plus: 6000 + 5*countBytes}, // it goes five times
		},
	},
	{
		name: "typing, jitter of 30 ms", link: netem.Config{Delay: feelRTT / 2, Jitter: 30 * time.Millisecond},
		sessions: 10, work: fiveASecond,
		bounds: []bound{
			{metric: "truth", quantile: 0.5, rtts: 1, plus: 30 + 10}, // the jitter's mean, each way
			{metric: "truth", quantile: 0.99, rtts: 1.2, plus: 2 * 30},
		},
	},
	{
		name: "typing, bursts of 100 ms, 5 %", link: netem.Config{Delay: feelRTT / 2, Burst: netem.Burst{Mean: 100 * time.Millisecond, Share: 0.05}},
		sessions: 10, work: fiveASecond,
		bounds: []bound{
			{metric: "truth", quantile: 0.5, rtts: 1, plus: 10},
			{metric: "truth", quantile: 0.99, rtts: 6},
		},
	},
	{
		name: "typing, 20 % reordered", link: netem.Config{Delay: feelRTT / 2, Reorder: 0.2, Early: 30 * time.Millisecond},
		sessions: 10, work: fiveASecond,
		bounds: []bound{
			{metric: "truth", quantile: 0.5, rtts: 1, plus: 10},
			{metric: "truth", quantile: 0.99, rtts: 1.2},
		},
	},
	{
		name: "another address", link: far, sessions: 5, work: whileItHappens, quick: true,
		events: []event{readdressed(3 * time.Second), readdressed(6 * time.Second), readdressed(9 * time.Second)},
		bounds: []bound{
			{metric: "back", quantile: 0.5, rtts: 3},
			{metric: "back", quantile: 1, rtts: 6},
		},
	},
	{
		name: "black hole of 3 s", link: far, sessions: 5, work: whileItHappens, quick: true,
		events: out(3*time.Second, 6*time.Second),
		bounds: []bound{
			{metric: "back", quantile: 0.5, rtts: 4},
			{metric: "back", quantile: 1, rtts: 10},
		},
	},
	{
		name: "the NAT forgets", link: far, sessions: 5, work: whileItHappens, nat: true,
		events: []event{forgotten(3 * time.Second), forgotten(6 * time.Second), forgotten(9 * time.Second)},
		bounds: []bound{
			{metric: "back", quantile: 0.5, rtts: 3},
			{metric: "back", quantile: 1, rtts: 6},
		},
	},
	{
		name: "outage of 30 s while output runs", link: far, sessions: 3,
		work:   output{lasts: 36 * time.Second, rate: 20_000, late: 20 * time.Second},
		events: out(3*time.Second, 33*time.Second),
		bounds: []bound{
			{metric: "complete", quantile: 0, plus: 1, atLeast: true},
			{metric: "back", quantile: 1, rtts: 5},
		},
	},
	{
		name: "idle", link: far, sessions: 2, work: idle{after: 10 * time.Second, rest: 30 * time.Second},
		bounds: []bound{{metric: "wire", quantile: 1, plus: 30}},
	},
	{
		name: "Ctrl-C behind a flood, 1 Mbit/s", link: bloat, sessions: 10, quick: true,
		work: ctrlC{command: incompressible, times: 1, lead: 4 * time.Second, used: 2 * time.Second},
		bounds: []bound{
			{metric: "prompt", quantile: 0.5, rtts: 2, plus: 40},
			{metric: "rate", quantile: 0.5, plus: 0.9, atLeast: true}, // of 1 Mbit/s
		},
	},
	{
		name: "Ctrl-C behind yes, 1 Mbit/s", link: bloat, alone: true,
		work:   ctrlC{command: yes, times: 6, used: 2 * time.Second},
		bounds: []bound{{metric: "prompt", quantile: 0.5, rtts: 2, plus: 20}},
	},
	{
		name: "compiler log, 2 Mbit/s", link: netem.Config{Delay: feelRTT / 2, Rate: 2_000_000, Queue: bloated}, quick: true,
		work:   cat{size: 10_000_000, times: 1, limit: time.Minute},
		bounds: []bound{{metric: "rate", quantile: 0.5, plus: 4 * 0.25, atLeast: true}}, // the link carries 0.25 MB/s
	},
	{
		name: "50 MB of text, no limit", alone: true,
		work:   cat{size: 50_000_000, times: 3, limit: time.Minute},
		bounds: []bound{{metric: "complete", quantile: 0, plus: 1, atLeast: true}},
	},
}

// countBytes is how much the count takes a second that answers each key with its glyph:
// the bounds of what typing costs are for glyphs alone.
const countBytes = 5.0 * float64(len("\x1b[1;1H<100>\x1b[5;31H"))

// far is a link that only takes time.
var far = netem.Config{Delay: feelRTT / 2}

// bloat is a slow link with a deep queue before it.
var bloat = netem.Config{Delay: feelRTT / 2, Rate: slowRate, Queue: bloated}

// lossy is a link that loses a share of all packets, each way.
func lossy(share float64) netem.Config {
	cfg := far
	cfg.Loss = share
	return cfg
}

var (
	fiveASecond    = keystrokes{keys: 100, pace: feelPace}
	whileItHappens = keystrokes{keys: 60, pace: feelPace}
)
