//go:build linux

package main

import "time"

const tenthLost = 0.1

// roams are what may happen while somebody types.
var roams = []roam{
	{
		name: "interface down, other up", median: rtt + 50*time.Millisecond, worst: 400 * time.Millisecond,
		event: wlanDown,
	},
	{
		name: "address replaced", median: rtt + 50*time.Millisecond, worst: 400 * time.Millisecond,
		event: wlanReaddressed,
	},
	{
		name: "black hole, other up", median: 500 * time.Millisecond, worst: 1200 * time.Millisecond,
		event: wlanBlackHole,
	},
	{
		name: "NAT mapping lost", median: 2*rtt + 20*time.Millisecond, worst: 400 * time.Millisecond,
		fromKey: true,
		nat:     true,
		event:   func(r *roamer, _ int) { r.wlan.port.Forget() },
	},
	{
		name: "redundant, either path dies", median: rtt + 5*time.Millisecond, worst: rtt + 20*time.Millisecond,
		fromKey: true,
		flags:   []string{"--redundant"},
		event:   eitherDies,
	},
	{
		name: "IPv4 only, then IPv6 only", median: 2*rtt + 100*time.Millisecond, worst: time.Second,
		byName: true,
		event:  func(r *roamer, _ int) { r.to6() },
	},
	{
		name: "10 % loss, interface down", median: 600 * time.Millisecond, worst: 2 * time.Second,
		loss:  tenthLost,
		event: wlanDown,
	},
	{
		name: "10 % loss, address replaced", median: 600 * time.Millisecond, worst: 2 * time.Second,
		loss:  tenthLost,
		event: wlanReaddressed,
	},
	{
		name: "10 % loss, black hole", median: 600 * time.Millisecond, worst: 2 * time.Second,
		loss:  tenthLost,
		event: wlanBlackHole,
	},
}

// outages are waits for the network. They end with an event, that the system tells
// programs of, or without.
var outages = []roam{
	{
		name: "30 s outage, event", median: rtt + 100*time.Millisecond, worst: 600 * time.Millisecond,
		outage: 30 * time.Second,
		event:  allDown, back: allUp,
	},
	{
		name: "30 s outage, no event", median: rtt + 150*time.Millisecond, worst: 600 * time.Millisecond,
		outage: 30 * time.Second,
		event:  allBlackHoles, back: noBlackHoles,
	},
	{
		name: "10 min outage, event", median: rtt + 150*time.Millisecond, worst: 2500 * time.Millisecond,
		outage: 10 * time.Minute,
		event:  allDown, back: allUp,
	},
	{
		name: "10 min outage, no event", median: 2 * time.Second, worst: 2500 * time.Millisecond,
		outage: 10 * time.Minute,
		event:  allBlackHoles, back: noBlackHoles,
	},
	{
		name: "10 min outage, no event, nobody types", median: 1500 * time.Millisecond, worst: 2500 * time.Millisecond,
		outage: 10 * time.Minute,
		event:  allBlackHoles, back: noBlackHoles,
		quiet: true,
	},
}

func wlanDown(r *roamer, _ int)        { r.wlan.down() }
func wlanReaddressed(r *roamer, _ int) { r.wlan.readdress() }
func wlanBlackHole(r *roamer, _ int)   { r.wlan.lose(true) }

// eitherDies has one of the interfaces fail, one way or the other.
func eitherDies(r *roamer, sample int) {
	switch sample % 4 {
	case 0:
		r.wlan.down()
	case 1:
		r.wwan.lose(true)
	case 2:
		r.wlan.lose(true)
	case 3:
		r.wwan.down()
	}
}

func allDown(r *roamer, _ int) {
	r.ns.Batch("link set wlan0 down", "link set wwan0 down")
}

func allUp(r *roamer) {
	r.ns.Batch("link set wlan0 up", r.wlan.route(), "link set wwan0 up", r.wwan.route())
}

func allBlackHoles(r *roamer, _ int) {
	r.wlan.lose(true)
	r.wwan.lose(true)
}

func noBlackHoles(r *roamer) {
	r.wlan.lose(false)
	r.wwan.lose(false)
}
