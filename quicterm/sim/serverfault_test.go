//go:build linux || darwin

package main

import "time"

// serverKinds are what happens to the processes of the server's machine, beside the daemon as a whole. They are drawn from
// a source of their own, as resourceKinds.
var serverKinds = []*kind{
	{name: "network process killed", weight: 3, happen: func(w *world, _ *fault) { w.host.killNetwork() }},
	{name: "monitor killed", weight: 2, most: time.Minute, happen: func(w *world, f *fault) {
		w.host.killMonitor()
		f.undo = w.startDaemon
	}},
	{name: "no descriptors at the server", weight: 2, most: time.Minute, happen: func(w *world, f *fault) {
		m := w.host.current()
		if m == nil {
			return
		}
		scarce := m.half
		if p := m.network.running(); p != nil && f.target/3%2 == 0 {
			scarce = p.half
		}
		scarce.setScarce(true)
		f.undo = func() { scarce.setScarce(false) }
	}},
	{name: "carriers end at once", weight: 2, most: 2 * time.Minute, happen: func(w *world, f *fault) {
		w.carrierLife.Store(1 + int64(f.x*float64(time.Second)))
		f.undo = func() { w.carrierLife.Store(0) }
	}},
}
