//go:build linux

package scenario

import "github.com/quicterm/quicterm/bench/work"

// screens is what the server knows of a session's screen: for a client that attaches, and for
// many that watch. It takes a minute.
var screens = []Scenario{
	{
		Name: "attach to vim, 1 Mbit/s", Link: bloat, Alone: true, Needs: work.NeedsVim,
		Work:   work.Reattach{Times: 9},
		Bounds: []Bound{{Metric: "screen", Quantile: 0.5, RTTs: 2, Plus: 150}, allOutput},
	},
	{
		Name: "50 MB of text, 50 watchers", Alone: true,
		Work: work.Watched{Watchers: 50, Size: 50_000_000, Times: 5},
		Bounds: []Bound{
			{Metric: "of alone", Quantile: 0.5, Plus: 0.9, AtLeast: true},
			{Metric: "watchers rss", Quantile: 1, Plus: 64},
		},
	},
}
