package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client"
)

// withClient calls f with a client of a server, and explains the error of f to the user. It
// calls f again if the server's key is unknown and the user accepts it.
func withClient(ctx context.Context, name string, opts *options, f func(*client.Client, *configs.Client) error) error {
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
	cfg := client.Config{Settings: settings, Log: log, Software: software()}
	call := func(cfg client.Config) error { return f(client.New(cfg), settings) }
	if t.local {
		return explain(loginByGrant(ctx, bootstrap.Local{}, cfg, call), t)
	}
	if len(settings.IdentityFiles) > 0 && len(opts.identities) == 0 {
		t.identities = expandHome(settings.IdentityFiles)
	}
	if len(settings.KnownHostsFiles) > 0 {
		t.knownHosts, t.globalHosts = expandHome(settings.KnownHostsFiles), nil
		t.config.KnownHostsCommand = nil
	}
	return explain(loginByKey(t, cfg, call), t)
}

// loginByGrant calls f with access by a grant: it brings address, host key and token.
func loginByGrant(ctx context.Context, source bootstrap.Source, cfg client.Config, f func(client.Config) error) error {
	access, err := bootstrap.NewAccess(ctx, source, cfg.Log)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	cfg.Resolve = access.Resolve
	cfg.CheckHost = access.CheckHost
	cfg.KeyTypes = access.KeyTypes()
	cfg.Token = access.Token()
	return f(cfg)
}

// loginByKey calls f with access by the user's keys, to a host that the known_hosts files
// or the user know.
func loginByKey(t *target, cfg client.Config, f func(client.Config) error) error {
	keys, closeAgent, err := userKeys(t, cfg.Log)
	if err != nil {
		return err
	}
	defer closeAgent()
	cfg.Resolve, cfg.User, cfg.Keys = t.resolve, t.user, keys
	var accepted ssh.PublicKey // by the user, maybe in no file
	for {
		known, err := t.loadKnownHosts()
		if err != nil {
			return err
		}
		cfg.KeyTypes = known.KeyTypes()
		cfg.CheckHost = func(key ssh.PublicKey) error {
			err := known.Check(key)
			if _, candidate := acceptable(err); candidate != nil && accepted != nil && bytes.Equal(candidate.Marshal(), accepted.Marshal()) {
				return nil
			}
			return err
		}
		err = f(cfg)
		host, key := acceptable(err)
		if accepted != nil {
			return err // one key was accepted: the server has yet another
		}
		if refusal := decideHost(t, err); refusal != nil || key == nil {
			return refusal
		}
		accepted, cfg.OneByOne = key, true
		keepHost(t, host, key)
	}
}

// expandHome replaces ~ at the start of file names.
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

// userKeys returns the keys to offer, of the agent and of files, and a function that
// closes the connection to the agent.
func userKeys(t *target, log *slog.Logger) ([]*auth.UserKey, func(), error) {
	var agentKeys []*auth.UserKey
	closeAgent := func() {}
	if t.agent != "" {
		keys, closeKeys, err := auth.AgentKeys(t.agent)
		if err != nil {
			log.Debug("no agent", "error", err)
		} else {
			agentKeys, closeAgent = keys, closeKeys
		}
	}
	ask := askSecret
	if t.batch {
		ask = func(string) ([]byte, error) { return nil, errBatch }
	}
	keys, skipped := auth.UserKeys(agentKeys, t.identities, t.identitiesOnly, ask)
	for _, err := range skipped {
		var unprotected *auth.UnprotectedError
		switch {
		case errors.As(err, &unprotected):
			warnUnprotected(unprotected)
		case len(keys) == 0:
			closeAgent()
			return nil, nil, errors.Join(skipped...)
		default:
			log.Debug("identity file skipped", "error", err)
		}
	}
	keys = slices.DeleteFunc(keys, func(k *auth.UserKey) bool { return t.userRules.Check(k.Public) != nil })
	for _, k := range keys {
		log.Debug("key to offer", "source", k.Source, "key", ssh.FingerprintSHA256(k.Public))
	}
	return keys, closeAgent, nil
}
