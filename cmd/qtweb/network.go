//go:build js

package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/quicterm/quicterm/migrate/carrier/websocket"
	"github.com/quicterm/quicterm/migrate/netmon"
)

// A network is a browser's, which leads to one URL. It implements [client.Network].
type network struct {
	url   string
	proof []byte // sent first, or nothing

	mu       sync.Mutex
	watchers map[chan netmon.Event]bool
}

func (n *network) Dial(ctx context.Context, _ string, _ netip.AddrPort) (net.Conn, error) {
	c, err := websocket.Open(ctx, n.url, nil)
	if err != nil || len(n.proof) == 0 {
		return c, err
	}
	if _, err := c.Write(n.proof); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (n *network) Listen(string) (net.PacketConn, error) {
	return nil, errors.New("a browser has no UDP")
}

// Interfaces returns none: the browser chooses.
func (n *network) Interfaces() ([]string, error) { return nil, nil }

func (n *network) Lookup(netip.AddrPort, string) (netmon.Route, error) { return netmon.Route{}, nil }

// Watch calls f with the events of the page, for one session.
func (n *network) Watch(ctx context.Context, _ func() netip.AddrPort, f func(netmon.Event)) error {
	events := make(chan netmon.Event, 1)
	n.mu.Lock()
	if n.watchers == nil {
		n.watchers = make(map[chan netmon.Event]bool)
	}
	n.watchers[events] = true
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.watchers, events)
	}()
	for {
		select {
		case e := <-events:
			f(e)
		case <-ctx.Done():
			return nil
		}
	}
}

// tell tells all sessions of an event. It does not block.
func (n *network) tell(e netmon.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.watchers {
		offer(w, e)
	}
}
