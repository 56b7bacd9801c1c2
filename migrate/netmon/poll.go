package netmon

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

// poll returns a source that looks every so often at the route to an address and
// at all links, as far as it may.
func poll(remote func() netip.AddrPort, every time.Duration) source {
	return func(ctx context.Context, changed func()) error {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for last := view(remote()); ; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			if now := view(remote()); now != last {
				last = now
				changed()
			}
		}
	}
}

// view describes the network. Descriptions differ if something has changed.
func view(remote netip.AddrPort) string {
	route, err := Lookup(remote, "")
	all, _ := links()
	return fmt.Sprint(route, err != nil, all)
}
