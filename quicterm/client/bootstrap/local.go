// Package bootstrap gives a client its first access to a daemon by a grant: the daemon's address and host key, and a
// token that is good for one login or, over ssh, a carrier that needs none. A process that runs `qtd grant` in an
// account on the daemon's machine gets a grant for that account.
//
// A grant takes this way:
//
//	ask.go         qtd grant asks the daemon over its unix socket, and starts one if none runs
//	line.go        qtd grant prints the grant as a line
//	local.go       a [Local] runs qtd grant and reads the line
//	ssh.go         an [SSH] runs qtd grant on another machine, and makes carriers
//	sshprocess.go  the ssh program, and the stream behind the line
package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// ErrNoProgram means that qtd is not installed on this machine.
var ErrNoProgram = errors.New("there is no qtd on this machine")

// Local is the way to the daemon of our account on this machine. It is safe for concurrent use.
type Local struct {
	log   *slog.Logger
	token []byte

	mu      sync.Mutex
	address netip.AddrPort
	key     ssh.PublicKey
	askedAt time.Time // of the last grant after the first one was used; zero before
}

// NewLocal obtains a first grant, and shows the user its warning before a session, unless say is nil.
func NewLocal(ctx context.Context, say func(string), log *slog.Logger) (*Local, error) {
	grant, err := RunGrant(ctx)
	if err != nil {
		return nil, err
	}
	if grant.Warning != "" && say != nil {
		say("qt: " + grant.Warning)
	}
	l := &Local{log: log, token: grant.Token}
	l.address, l.key, err = parse(grant)
	return l, err
}

// Token returns the token for the first login.
func (l *Local) Token() []byte { return l.token }

// KeyTypes returns the types of host keys to ask the daemon for.
func (l *Local) KeyTypes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return []string{l.key.Type()}
}

// Resolve returns the daemon's address. The first call uses the grant of NewLocal. A later
// call asks for a new grant, at most once in askInterval: the daemon may have ended, and a
// grant starts another one, maybe on another port and with another key.
func (l *Local) Resolve(ctx context.Context) ([]netip.AddrPort, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.askedAt.IsZero()
	if now := time.Now(); now.Sub(l.askedAt) > askInterval {
		l.askedAt = now
		if !first {
			l.refreshLocked(ctx)
		}
	}
	return []netip.AddrPort{l.address}, nil
}

func (l *Local) refreshLocked(ctx context.Context) {
	grant, err := RunGrant(ctx)
	if err != nil {
		l.log.Debug("no grant", "error", err)
		return
	}
	address, key, err := parse(grant)
	if err != nil {
		l.log.Debug("no grant", "error", err)
		return
	}
	l.address, l.key = address, key
}

// CheckHost accepts the host key of the last grant.
func (l *Local) CheckHost(key ssh.PublicKey) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !bytes.Equal(key.Marshal(), l.key.Marshal()) {
		return errors.New("the daemon has another key than its grant says")
	}
	return nil
}

// RunGrant returns a new grant, from a daemon that it starts if none runs. It blocks until then or until ctx ends. It
// runs the qtd beside our own program, or else the one in PATH.
func RunGrant(ctx context.Context) (*wire.Grant, error) {
	name := "qtd"
	if exe, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(exe), name)
		if _, err := os.Stat(beside); err == nil {
			name = beside
		}
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, "grant")
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, ErrNoProgram
	}
	if err != nil {
		text := strings.TrimPrefix(strings.TrimSpace(complaint.String()), "qtd: ")
		if text == "" {
			text = err.Error()
		}
		return nil, fmt.Errorf("no daemon on this machine: %s", text)
	}
	return ReadLine(&out)
}

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
