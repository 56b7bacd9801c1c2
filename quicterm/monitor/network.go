//go:build linux || darwin

package monitor

import (
	"context"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// Calls returns what the network half may ask.
func (s *Monitor) Calls() *privsep.Calls {
	return &privsep.Calls{
		Setup:    privsep.Told(func(context.Context) (*privsep.Setup, error) { return s.Setup(), nil }),
		Sign:     s.Sign,
		Offer:    s.Offer,
		Prove:    s.Prove,
		Redeem:   s.Redeem,
		Leave:    privsep.Done(func(_ context.Context, id *privsep.LoginID) error { s.Leave(*id); return nil }),
		Check:    privsep.Done(s.Check),
		List:     s.List,
		Describe: s.Describe,
		Pass:     s.Pass,
		Revoke:   s.Revoke,
		Attach:   s.Attach,
		Resume:   s.Resume,
		Measure:  privsep.Told(s.Measure),
	}
}
