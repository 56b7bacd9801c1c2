//go:build linux || darwin

package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/base64"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Revoke has all holders of the account take rights to resume.
func (s *Monitor) Revoke(ctx context.Context, req *privsep.Revoke) (*wire.Revoked, error) {
	c, end, err := s.serve(ctx, s.changing, &req.By)
	if err != nil {
		return nil, err
	}
	defer end()
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
	revoked, err := s.revokeOf(ctx, c.log, c.account.UID, c.open(), m)
	if err == nil {
		c.log.Info("client has revoked access", "event", "revoke", "revoked", revokedName(req.All, req.Key),
			"clients", revoked.Clients, "silent", revoked.Silent)
	}
	return revoked, err
}

// revokedName says in the log whose access is revoked.
func revokedName(all bool, key []byte) string {
	if all {
		return "all"
	}
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(key)
}
