package privsep

import (
	"context"
	"errors"
	"sync"
)

// A Loopback is a network process within this process. Tests do with it what a hostile one could.
type Loopback struct {
	*Remote
	process *Process
	running *running
}

// NewLoopback returns a network process of a host, with the given network half.
func NewLoopback(host *Host, network Network) (*Loopback, error) {
	ours, file, err := socketPair()
	if err != nil {
		return nil, err
	}
	theirs, err := socketOf(file)
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	l := &Loopback{Remote: NewRemote(theirs), process: newProcess(host)}
	l.running = l.process.newRunning(ours)
	l.channel.serve(tableOf(l.calls(network)))
	return l, nil
}

// Run serves both ends until ctx ends.
func (l *Loopback) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range []*channel{l.channel, l.running.channel} {
		defer context.AfterFunc(ctx, c.close)()
		wg.Go(func() { c.run(ctx) })
	}
	wg.Wait()
}

// Try makes the monitor answer a call, by its place in [Calls], with a request of any bytes. It returns what is sent.
func (l *Loopback) Try(ctx context.Context, place int, request []byte) (reply []byte, descriptors []int, err error) {
	table := *l.running.table.Load()
	answer, descriptors, err := l.process.answer(func() (any, error) {
		return table.serve(ctx, firstCall+kind(place), request, nil)
	})
	if err == nil {
		reply, err = channelEncoding.Marshal(answer)
	}
	return reply, descriptors, err
}
