//go:build linux || darwin

package monitor

import (
	"context"
	"crypto"
	"errors"

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
		Enroll:   s.Enroll,
		Keys:     s.Keys,
		Attach:   s.Attach,
		Resume:   s.Resume,
		Measure:  privsep.Told(s.Measure),
	}
}

// Host returns what a network half in another process gets.
func (s *Monitor) Host() *privsep.Host {
	return &privsep.Host{Calls: s.Calls(), Logins: &s.logins, Log: s.log, Panics: s.panics}
}

// Setup returns what the network half has for its whole life.
func (s *Monitor) Setup() *privsep.Setup {
	setup := &privsep.Setup{
		Software: s.software, Begun: s.begun, ResetKey: s.secrets.Reset, TokenKey: s.secrets.AddressToken,
		MaxUnauthenticated: s.settings().MaxUnauthenticated, MaxSessionsPerUser: s.settings().MaxSessionsPerUser,
	}
	setup.WebProxy, _ = s.settings().WebProxies() // which was checked
	setup.WebTLS = s.web != nil
	for _, k := range s.hostKeys {
		plain, certified := k.Certificates()
		one := privsep.Certificate{Key: k.Public.Marshal(), Plain: plain, Certified: certified}
		setup.Certificates = append(setup.Certificates, one)
	}
	return setup
}

// state returns what may change while the network half runs.
func (s *Monitor) state() privsep.State {
	return privsep.State{
		AuthTimeout: s.settings().AuthTimeout.Duration, LogLevel: s.settings().LogLevel,
		TicketKeys: s.ticketKeys.Current(), Draining: s.draining.Load(), WebChain: s.web.Chain(),
	}
}

// Sign signs for a host key. It signs nothing but what a server of TLS 1.3 signs in a handshake: the
// network half cannot have it sign an ssh handshake, a host certificate, or for a client.
func (s *Monitor) Sign(_ context.Context, r *privsep.Sign) (*[]byte, error) {
	if r.Web && s.web != nil {
		signature, err := s.web.Sign(r.Message, crypto.Hash(r.Hash))
		return &signature, err
	}
	if r.Web || r.Key < 0 || r.Key >= len(s.hostKeys) {
		return nil, errors.New("there is no such host key")
	}
	signature, err := s.hostKeys[r.Key].SignHandshake(r.Message, crypto.Hash(r.Hash))
	return &signature, err
}
