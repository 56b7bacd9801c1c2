package client

import (
	"context"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// followInterval is the time between two looks at the sessions.
	followInterval = time.Second

	// followTimeout bounds the wait for an answer. A path that takes longer is gone.
	followTimeout = 15 * time.Second
)

// Follow lists the account's sessions each second, on one connection, and calls listed with what
// List returns. It returns when ctx ends, or when the connection is lost: then the error is a
// [BrokenOffError].
func (c *Client) Follow(ctx context.Context, listed func(infos []wire.Info, more int)) error {
	request, err := wire.New(&wire.List{Stay: true})
	if err != nil {
		return err
	}
	l, err := c.login(ctx, request)
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for answer := l.answer; ; {
		infos, listing, err := decodeListing(answer)
		if err != nil {
			return err
		}
		listed(infos, listing.More)
		select {
		case <-time.After(followInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		timeout := time.AfterFunc(followTimeout, func() { l.Close() })
		err = wire.Write(l, request)
		if err == nil {
			answer, err = wire.Read(l, wire.MaxMessage)
		}
		timeout.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return &BrokenOffError{err}
		}
	}
}
