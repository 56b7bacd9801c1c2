package netmon

import (
	"context"
	"net/netip"
	"time"
)

const (
	// reportInterval is the least time between two reports: longer than the dozen
	// messages of one network change take, and too short for a person to notice.
	reportInterval = 50 * time.Millisecond

	// clockInterval is the time between two readings of the clocks.
	clockInterval = time.Second

	// pollInterval is the time between two looks at the network on systems that do not notify of changes.
	pollInterval = 2 * clockInterval
)

// An Event is a reason to look at the network again.
type Event int

const (
	// Changed: interfaces, addresses or routes may have changed. Systems also send
	// it when they only confirm what they announced before.
	Changed Event = iota
	// Woke: the machine slept, this process was stopped, or a clock jumped. What
	// was known of the network is out of date.
	Woke
)

func (e Event) String() string { return [...]string{"changed", "woke"}[e] }

// A source calls changed after each change of the network until the context ends, then returns nil. It returns an
// error if it cannot notice changes. It joins its goroutines before it returns.
type source func(ctx context.Context, changed func()) error

// Watch calls f after each event. It returns nil when the context ends, or an error if nothing can be watched; no
// goroutine is left then. It calls f in its caller's goroutine: immediately for the first event of a burst, then at
// most once per 50 ms for those that follow, with Woke if that is one of them.
//
// Remote returns the address whose route matters, or the zero value while it is not
// known. Watch calls it from another goroutine, and only on systems that do not
// notify of changes: there, it notices within 2 s that the route has changed.
func Watch(ctx context.Context, remote func() netip.AddrPort, f func(Event)) error {
	return watch(ctx, withFallback(notifications, poll(remote, pollInterval)), f)
}

// withFallback returns a source that continues with the second source if the first fails.
func withFallback(first, second source) source {
	return func(ctx context.Context, changed func()) error {
		if err := first(ctx, changed); err == nil {
			return nil
		}
		return second(ctx, changed)
	}
}

// watch reports the events of a source and of the clocks.
func watch(ctx context.Context, src source, f func(Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	changes := make(chan struct{}, 1) // holds one change; more add nothing
	ended := make(chan error, 1)
	go func() {
		ended <- src(ctx, func() {
			select {
			case changes <- struct{}{}:
			default:
			}
		})
		close(ended)
	}()
	defer func() {
		cancel()
		for range ended {
		}
	}()

	tick := time.NewTicker(clockInterval)
	defer tick.Stop()
	start := time.Now()
	clocks := clocks{wall: start.Round(0)}

	var quiet <-chan time.Time // not nil: no report until it fires
	var pending Event          // the report after that, if hasPending
	var hasPending bool
	report := func(e Event) {
		if quiet != nil {
			if !hasPending || e > pending {
				pending, hasPending = e, true
			}
			return
		}
		f(e)
		quiet = time.After(reportInterval)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-changes:
			report(Changed)
		case <-tick.C:
			if now := time.Now(); clocks.update(now.Round(0), now.Sub(start)) {
				report(Woke)
			}
		case <-quiet:
			quiet = nil
			if hasPending {
				hasPending = false
				report(pending)
			}
		}
	}
}
