//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// admitLocal returns the client that an account's process asks a carrier for, or why it gets
// none.
func (s *Monitor) admitLocal(ctx context.Context, a *account.Account, ask *wire.Ask) (*privsep.Local, error) {
	if err := access.CheckExpired(a); err != nil {
		return nil, err
	}
	l := new(privsep.Local)
	client, err := netip.ParseAddrPort(ask.Client)
	server, err2 := netip.ParseAddrPort(ask.Server)
	if errors.Join(err, err2) == nil {
		l.Path = privsep.Path{Client: privsep.WithoutZone(client), Server: privsep.WithoutZone(server)}
	}
	allowed, err := s.access.TokenPermissions(ctx, a, l.Path.From(), l.Path.At())
	if err != nil {
		return nil, err
	}
	p := &proven{account: a, allowed: *allowed, scope: allowed.Scope(nil), credential: privsep.Credential{Proof: privsep.ProofSSH, Reported: ask.Reported}, at: time.Now()}
	login, err := s.login(p, l.Path)
	if err != nil {
		return nil, err
	}
	l.Login = *login
	return l, nil
}

// AdmitLocal returns the client of an account that needs no login. A server that serves no unix
// socket, such as one in memory, has its local clients so.
func (s *Monitor) AdmitLocal(ctx context.Context, uid uint32) (*privsep.Local, error) {
	a, err := s.names.LookupID(ctx, uid)
	if err != nil {
		return nil, err
	}
	return s.admitLocal(ctx, a, &wire.Ask{})
}
