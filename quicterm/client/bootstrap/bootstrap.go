// Package bootstrap gives a client its first access to a daemon by a grant: the daemon's
// address and host key, and a token that is good for one login or, over ssh, a carrier that
// needs none. A process that runs `qtd grant` in an account on the daemon's machine gets a
// grant for that account.
//
// A grant takes this way:
//
//	ask.go        qtd grant asks the daemon over its unix socket, and starts one if none runs
//	line.go       qtd grant prints the grant as a line
//	local.go      a [Source] runs qtd grant and reads the line
//	bootstrap.go  an [Access] has what a client needs to dial and to log in
//	ssh.go        an [SSH] runs qtd grant on another machine, and makes carriers
//	process.go    the ssh program, and the stream behind the line
package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Source obtains grants for one account on one machine.
type Source interface {
	// Grant returns a new grant, from a daemon that it starts if none runs. It
	// blocks until then or until ctx ends.
	Grant(ctx context.Context) (*wire.Grant, error)
}

// askInterval is the least time between two requests for a grant.
const askInterval = time.Second

// An Access is the way to the daemon of a source. It is safe for concurrent use.
type Access struct {
	source Source
	log    *slog.Logger
	token  []byte

	mu      sync.Mutex
	address netip.AddrPort
	key     ssh.PublicKey
	askedAt time.Time // of the last grant after the first one was used; zero before
}

// NewAccess asks a source for a grant.
func NewAccess(ctx context.Context, source Source, log *slog.Logger) (*Access, error) {
	grant, err := source.Grant(ctx)
	if err != nil {
		return nil, err
	}
	a := &Access{source: source, log: log, token: grant.Token}
	a.address, a.key, err = parse(grant)
	return a, err
}

// parse returns the address and the host key of a grant.
func parse(grant *wire.Grant) (netip.AddrPort, ssh.PublicKey, error) {
	address, err := netip.ParseAddrPort(grant.Address)
	if err != nil {
		return address, nil, fmt.Errorf("grant: %w", err)
	}
	key, err := ssh.ParsePublicKey(grant.HostKey)
	if err != nil {
		return address, nil, fmt.Errorf("grant: %w", err)
	}
	return address, key, nil
}

// Token returns the token for the first login.
func (a *Access) Token() []byte { return a.token }

// KeyTypes returns the types of host keys to ask the daemon for.
func (a *Access) KeyTypes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []string{a.key.Type()}
}

// Resolve returns the daemon's address. The first call uses the grant of NewAccess. A later
// call asks for a new grant, at most once in askInterval: the daemon may have ended, and a
// grant starts another one, maybe on another port and with another key.
func (a *Access) Resolve(ctx context.Context) ([]netip.AddrPort, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.askedAt.IsZero()
	if now := time.Now(); now.Sub(a.askedAt) > askInterval {
		a.askedAt = now
		if !first {
			a.refreshLocked(ctx)
		}
	}
	return []netip.AddrPort{a.address}, nil
}

func (a *Access) refreshLocked(ctx context.Context) {
	grant, err := a.source.Grant(ctx)
	if err != nil {
		a.log.Debug("no grant", "error", err)
		return
	}
	address, key, err := parse(grant)
	if err != nil {
		a.log.Debug("no grant", "error", err)
		return
	}
	a.address, a.key = address, key
}

// CheckHost accepts the host key of the last grant.
func (a *Access) CheckHost(key ssh.PublicKey) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !bytes.Equal(key.Marshal(), a.key.Marshal()) {
		return errors.New("the daemon has another key than its grant says")
	}
	return nil
}
