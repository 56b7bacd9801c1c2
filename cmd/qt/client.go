package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// with calls f with a client of a target. Where the server is not known and the
// person accepts it, it calls f once more.
func with(ctx context.Context, name string, opts *options, f func(*quicterm.Client, *configs.Client) error) error {
	settings, err := configs.LoadClient("")
	if err != nil {
		return err
	}
	if opts.redundant {
		settings.Paths = "redundant"
	}
	log := slog.New(slog.DiscardHandler)
	if opts.verbose {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	t, err := findTarget(ctx, name, opts, settings.Port)
	if err != nil {
		return err
	}
	if t.local {
		cfg, err := localConfig(ctx, settings, log)
		if err != nil {
			return err
		}
		return explain(f(quicterm.NewClient(*cfg), settings), t)
	}
	if len(settings.IdentityFiles) > 0 && len(opts.identities) == 0 {
		t.identities = expandHome(settings.IdentityFiles)
	}
	if len(settings.KnownHostsFiles) > 0 {
		t.knownHosts = expandHome(settings.KnownHostsFiles)
	}
	keys, closeAgent, err := userKeys(t, log)
	if err != nil {
		return err
	}
	defer closeAgent()
	var accepted ssh.PublicKey // a key that no file keeps
	for {
		known, err := auth.LoadKnownHosts(t.alias, t.port, t.knownHosts)
		if err != nil {
			return err
		}
		err = f(quicterm.NewClient(quicterm.ClientConfig{
			Settings: settings,
			Log:      log,
			Software: software(),
			Resolve:  t.resolve,
			CheckHost: func(key ssh.PublicKey) error {
				err := known.Check(key)
				var unknown *auth.UnknownHostError
				if errors.As(err, &unknown) && accepted != nil && bytes.Equal(key.Marshal(), accepted.Marshal()) {
					return nil
				}
				return err
			},
			KeyTypes: known.KeyTypes(),
			User:     t.user,
			Keys:     keys,
		}), settings)
		var unknown *auth.UnknownHostError
		if !errors.As(err, &unknown) || len(t.knownHosts) == 0 || !confirmHost(unknown.Host, unknown.Key) {
			return explain(err, t)
		}
		accepted = unknown.Key
		file := t.knownHosts[0]
		if err := auth.AddKnownHost(file, unknown.Host, unknown.Key); err != nil {
			say("the key of %s is accepted for this time, it could not be kept: %v", unknown.Host, err)
		} else if now, err := auth.LoadKnownHosts(t.alias, t.port, t.knownHosts); err != nil || now.Check(accepted) != nil {
			say("the key of %s is accepted for this time, it was not kept by %s", unknown.Host, file)
		}
	}
}

func expandHome(files []string) []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return files
	}
	var expanded []string
	for _, f := range files {
		if strings.HasPrefix(f, "~/") {
			f = filepath.Join(home, f[2:])
		}
		expanded = append(expanded, f)
	}
	return expanded
}

// userKeys gathers the keys to offer.
func userKeys(t *target, log *slog.Logger) ([]*auth.UserKey, func(), error) {
	var agentKeys []*auth.UserKey
	closeAgent := func() {}
	if t.agent != "" {
		var err error
		keys, done, err := auth.AgentKeys(t.agent)
		if err != nil {
			log.Debug("no agent", "error", err)
		} else {
			agentKeys, closeAgent = keys, done
		}
	}
	keys, err := auth.UserKeys(agentKeys, t.identities, t.identitiesOnly, askSecret)
	if err != nil {
		closeAgent()
		return nil, nil, err
	}
	for _, k := range keys {
		log.Debug("key to offer", "source", k.Source, "key", ssh.FingerprintSHA256(k.Public))
	}
	return keys, closeAgent, nil
}

// regrant is how often a daemon of this machine is asked for anew at most,
// while it does not answer.
const regrant = time.Second

// localConfig returns how to reach the daemon of this machine, which is started
// if there is none.
func localConfig(ctx context.Context, settings *configs.Client, log *slog.Logger) (*quicterm.ClientConfig, error) {
	grant, err := askLocalGrant(ctx)
	if err != nil {
		return nil, err
	}
	address, key, err := parseGrant(grant)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex // of address, key and asked
	var asked time.Time
	return &quicterm.ClientConfig{
		Settings: settings,
		Log:      log,
		Software: software(),
		// The first time the grant is fresh. After that the daemon may have
		// ended, and a grant starts another, maybe on another port.
		Resolve: func(ctx context.Context) ([]netip.AddrPort, error) {
			mu.Lock()
			defer mu.Unlock()
			first := asked.IsZero()
			if now := time.Now(); now.Sub(asked) > regrant {
				asked = now
				if !first {
					if grant, err := askLocalGrant(ctx); err != nil {
						log.Debug("no grant", "error", err)
					} else if a, k, err := parseGrant(grant); err == nil {
						address, key = a, k // another daemon may have another key
					}
				}
			}
			return []netip.AddrPort{address}, nil
		},
		CheckHost: func(k ssh.PublicKey) error {
			mu.Lock()
			defer mu.Unlock()
			if !bytes.Equal(k.Marshal(), key.Marshal()) {
				return errors.New("the daemon of this machine has another key than it says")
			}
			return nil
		},
		KeyTypes: []string{key.Type()},
		Ticket:   grant.Ticket,
	}, nil
}

// parseGrant returns where the daemon of a grant is, and its key.
func parseGrant(grant *wire.Grant) (netip.AddrPort, ssh.PublicKey, error) {
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

// askLocalGrant runs qtd grant: the one beside us, or else the one in PATH.
func askLocalGrant(ctx context.Context) (*wire.Grant, error) {
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
		return nil, withHint(errors.New("there is no qtd on this machine"), "put it beside qt, or into a directory of PATH")
	}
	if err != nil {
		text := strings.TrimPrefix(strings.TrimSpace(complaint.String()), "qtd: ")
		if text == "" {
			text = err.Error()
		}
		return nil, fmt.Errorf("no daemon on this machine: %s", text)
	}
	return wire.ReadGrant(io.Reader(&out))
}
