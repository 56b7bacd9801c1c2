//go:build linux || darwin

package monitor

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/hub"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

const (
	// maxRelayed bounds the connections through the hub that are served in this process at once: one more is closed.
	// A network process bounds them itself, before their login as those by TCP, and then by account.
	maxRelayed = 1024

	// hubClock is how far the time of a login to the hub may be from the monitor's: both have the clock of this machine.
	hubClock = time.Minute

	// nkeySize is the length of a public nkey, in letters and digits of base32.
	nkeySize = 56
)

// hubName returns the name of this host at its hub: that of the settings, or the machine's up to its first dot.
func (s *Monitor) hubName() (string, error) {
	name, err := os.Hostname()
	short, _, _ := strings.Cut(strings.ToLower(name), ".")
	name = cmp.Or(s.settings().HubName, short)
	if name == "" && err != nil {
		return "", err
	}
	return name, hub.CheckName(name)
}

// hubKey returns the host key by which this host logs in to its hub: one of Ed25519 if there is one.
func (s *Monitor) hubKey() *auth.HostKey {
	for _, k := range s.hostKeys {
		if k.Public.Type() == ssh.KeyAlgoED25519 {
			return k
		}
	}
	return s.hostKeys[0]
}

// linkHost returns what the process of the hub gets. relay takes the connections.
func (s *Monitor) linkHost(relay func(context.Context, net.Conn, privsep.Caller)) (*privsep.LinkHost, error) {
	name, err := s.hubName()
	if err != nil {
		return nil, err
	}
	address, err := hub.ParseAddress(s.settings().Hub)
	if err != nil {
		return nil, err
	}
	key := s.hubKey()
	setup := privsep.LinkSetup{URL: s.settings().Hub, Key: key.Public.Marshal(), Name: name, Version: s.software}
	for _, k := range s.hostKeys[:min(len(s.hostKeys), hub.MaxKeys)] {
		setup.Keys = append(setup.Keys, ssh.FingerprintSHA256(k.Public))
	}
	return &privsep.LinkHost{
		Setup: setup, Relay: relay, Log: s.log, Panics: s.panics,
		Prove: func(r *privsep.HubLogin) (*privsep.HubProof, error) { return proveToHub(key, address.Host, r) },
	}, nil
}

var errHubLogin = errors.New("what the process of the hub wants signed is no login of now")

// proveToHub signs a login to a hub. The text is built here, in its own form: nobody has the key sign anything else.
func proveToHub(key *auth.HostKey, host string, r *privsep.HubLogin) (*privsep.HubProof, error) {
	at := time.Unix(r.Time, 0)
	isOther := func(c rune) bool { return (c < 'A' || c > 'Z') && (c < '2' || c > '7') }
	if len(r.NKey) != nkeySize || strings.ContainsFunc(r.NKey, isOther) || time.Since(at).Abs() > hubClock {
		return nil, errHubLogin
	}
	signature, err := key.SignText(hub.Statement(host, at, r.NKey))
	if err != nil {
		return nil, err
	}
	return &privsep.HubProof{Format: signature.Format, Blob: signature.Blob}, nil
}

// relayed serves clients that the hub relays.
type relayed struct {
	network privsep.Network
	places  chan struct{}
	work    sync.WaitGroup
}

// serve has the network half serve a client. If that is in this process, it does not block.
func (r *relayed) serve(ctx, life context.Context, c net.Conn, caller privsep.Caller) {
	if _, apart := r.network.(interface{ Apart() }); apart {
		r.network.ServeRelayed(ctx, c, caller)
		return
	}
	select {
	case r.places <- struct{}{}:
	default:
		c.Close()
		return
	}
	r.work.Go(func() {
		defer func() { <-r.places }()
		r.network.ServeRelayed(life, c, caller)
	})
}

// serveHub keeps this host connected to its hub, if it has one, until ctx ends.
func (s *Monitor) serveHub(ctx context.Context) error {
	if s.settings().Hub == "" {
		<-ctx.Done()
		return nil
	}
	r := &relayed{network: *s.network.Load(), places: make(chan struct{}, maxRelayed)}
	defer r.work.Wait()
	host, err := s.linkHost(func(once context.Context, c net.Conn, caller privsep.Caller) { r.serve(once, ctx, c, caller) })
	if err == nil {
		err = s.runLink(ctx, host)
	}
	if err != nil {
		s.log.Error("this host is not reachable through the hub", "event", "hub", "error", err)
	}
	<-ctx.Done()
	return nil
}
