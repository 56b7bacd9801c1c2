package netmon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// poll returns a source that compares, at an interval, the route to an address and
// all interfaces with what they were before.
func poll(remote func() netip.AddrPort, interval time.Duration) source {
	return func(ctx context.Context, changed func()) error {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for last := snapshot(remote()); ; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			if now := snapshot(remote()); now != last {
				last = now
				changed()
			}
		}
	}
}

// snapshot describes the route to an address and all interfaces, as far as the
// system permits: two snapshots differ if any of it has changed.
func snapshot(remote netip.AddrPort) string {
	route, err := Lookup(remote, "")
	all, _ := net.Interfaces()
	text := fmt.Sprint(route, err != nil)
	for _, i := range all {
		text += fmt.Sprint(i.Name, i.Flags, addresses(i))
	}
	return text
}
