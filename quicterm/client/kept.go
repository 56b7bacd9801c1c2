package client

import (
	"context"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// Close closes the connection that may be kept for further requests.
func (c *Client) Close() {
	if l := c.takeKept(); l != nil {
		l.Close()
	}
}

// keep keeps a connection on which everything is answered for the next request.
func (c *Client) keep(l *loggedIn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept != nil {
		c.kept.Close()
	}
	c.kept = l
}

// takeKept returns a connection that takes another request, or nil.
func (c *Client) takeKept() *loggedIn {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.kept
	c.kept = nil
	if l != nil && time.Since(l.since) > KeptTime {
		l.Close()
		return nil
	}
	return l
}

// ask sends a request on a connection of an earlier one, and waits for the answer.
func (l *loggedIn) ask(ctx context.Context, request wire.Message) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	err := wire.Write(l, request)
	if err == nil {
		l.answer, err = wire.Read(l, wire.MaxMessage)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		l.Close()
		return &BrokenOffError{err}
	}
	return nil
}
