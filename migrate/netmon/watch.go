package netmon

import (
	"context"
	"net/netip"
	"time"
)

const (
	// joinFor is the time between calls of Watch's function: long enough for the
	// dozen messages that one change of network is, and too short for a person.
	joinFor = 50 * time.Millisecond

	// clockEvery is the time between looks at the clocks.
	clockEvery = time.Second

	// pollEvery is the time between looks at the network where it does not tell
	// of changes itself.
	pollEvery = 2 * time.Second
)

// An Event is why the network should be looked at.
type Event int

// The events.
const (
	// Changed: links, addresses or routes may have changed. Systems say so too
	// when they have only confirmed what was known.
	Changed Event = iota
	// Woke: the machine has slept or this process was stopped, or a clock has
	// jumped. What was known of the network is out of date.
	Woke
)

func (e Event) String() string { return [...]string{"changed", "woke"}[e] }

// A source calls changed after changes of the network until the context ends,
// or returns an error if it cannot tell of any more. It joins its goroutines.
type source func(ctx context.Context, changed func()) error

// Watch calls f after each event until the context ends, then returns nil, or an
// error before if nothing can be watched. It calls f itself, and no goroutine
// is left when it returns. The first event of a burst is told at once. Those
// that follow it within 50 ms are told together after that time, as Woke if that
// is one of them.
//
// Remote returns the address that matters, or none while that is not known. It is
// called from another goroutine, and only where the system does not tell of
// changes, which are then noticed within 2 s by what they do to the route there.
func Watch(ctx context.Context, remote func() netip.AddrPort, f func(Event)) error {
	return watch(ctx, either(kernel, poll(remote, pollEvery)), f)
}

// either returns a source that goes on with the second source when the first
// fails.
func either(first, second source) source {
	return func(ctx context.Context, changed func()) error {
		if err := first(ctx, changed); err == nil {
			return nil
		}
		return second(ctx, changed)
	}
}

// watch tells of the events of a source and of the clocks.
func watch(ctx context.Context, from source, f func(Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	changes := make(chan struct{}, 1) // full: it is known already
	ended := make(chan error, 1)
	go func() {
		ended <- from(ctx, func() {
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

	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	start := time.Now()
	clocks := clocks{wall: start.Round(0)}

	var busy <-chan time.Time // until then, events are joined
	var joined Event
	var waiting bool // joined is to be told
	tell := func(e Event) {
		if busy != nil {
			if !waiting || e > joined {
				joined, waiting = e, true
			}
			return
		}
		f(e)
		busy = time.After(joinFor)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-changes:
			tell(Changed)
		case <-tick.C:
			if now := time.Now(); clocks.jumped(now.Round(0), now.Sub(start)) {
				tell(Woke)
			}
		case <-busy:
			busy = nil
			if waiting {
				waiting = false
				tell(joined)
			}
		}
	}
}
