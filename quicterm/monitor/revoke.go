//go:build linux || darwin

package monitor

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"sync"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// Revoke has all holders of the account take rights to resume.
func (s *Monitor) Revoke(ctx context.Context, req *Revoke) (*wire.Revoked, error) {
	c, err := s.changing(&req.By)
	if err != nil {
		return nil, err
	}
	m, err := wire.New(&wire.Revoke{All: req.All, Key: req.Key})
	if err != nil {
		return nil, err
	}
	switch {
	case c.scope != "":
		return nil, &wire.Error{Text: "a key with a command may revoke nothing"}
	case req.All != (len(req.Key) == 0), !req.All && len(req.Key) != sha256.Size:
		return nil, &wire.Error{Text: "name one key, or all"}
	}
	use := c.server.accounts.of(c.account.UID)
	end, err := use.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	ids := c.server.holders.Sessions(c.account.UID)
	if err := use.asks.WaitN(ctx, leastAsks+len(ids)); err != nil {
		return nil, err
	}
	var revoked wire.Revoked
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxAsks)
	for _, id := range ids {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var one wire.Revoked
			err := s.contain(c.log, func() error {
				answer, err := c.server.holders.Ask(ctx, c.account.UID, id, c.open(), m)
				if err == nil {
					err = answer.Decode(&one)
				}
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				revoked.Clients += min(one.Clients, uint32(c.server.settings().MaxWatchers)+1)
			case !errors.Is(err, fs.ErrNotExist):
				if revoked.Silent++; revoked.Silent == 1 { // an account can have thousands such
					c.log.Warn("holder does not revoke, and maybe others", "id", id.Short(), "error", err)
				}
			}
		})
	}
	wg.Wait()
	return &revoked, nil
}
