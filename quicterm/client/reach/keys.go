package reach

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client"
)

// byKey calls f with access by the user's keys, to a host that the known_hosts files or the user know, or ssh.
func (a *Access) byKey(ctx context.Context, cfg client.Config, f Call) error {
	t := a.Target
	keys, closeAgent, err := a.UserKeys()
	if err != nil && a.Tunnel == nil {
		return err
	}
	defer closeAgent()
	cfg.Resolve, cfg.User, cfg.Keys = a.resolve, t.User, keys
	if a.Tunnel == nil && term.IsTerminal(int(os.Stderr.Fd())) {
		cfg.Waiting = func() { Say(waiting, t.Name, t.DaemonPort) }
	}
	var accepted ssh.PublicKey // by the user, maybe in no file
	for {
		known, err := t.LoadKnownHosts()
		if err != nil {
			return err
		}
		cfg.KeyTypes = known.KeyTypes()
		cfg.CheckHost = func(key ssh.PublicKey) error {
			err := known.Check(key)
			if err == nil || errors.As(err, new(*auth.RevokedHostError)) {
				return err
			}
			if a.Tunnel != nil && a.Tunnel.CheckHost(key) == nil {
				return nil
			}
			host, candidate := acceptable(err)
			switch {
			case candidate == nil:
				return err
			case accepted != nil && bytes.Equal(candidate.Marshal(), accepted.Marshal()):
				return nil
			case a.before.Port == t.DaemonPort && a.before.Key == ssh.FingerprintSHA256(key):
				return nil
			case a.Tunnel != nil: // no alarm: a grant can tell the key, if it is the daemon's
				return &auth.UnknownHostError{Host: host, Key: candidate}
			}
			return err
		}
		err = a.call(ctx, cfg, f)
		if a.Tunnel != nil && !errors.As(err, new(*auth.ChangedHostError)) {
			return err
		}
		host, key := acceptable(err)
		if accepted != nil {
			return err // one key was accepted: the server has yet another
		}
		if refusal := decideHost(t, err); refusal != nil || key == nil {
			return refusal
		}
		accepted, cfg.OneByOne = key, true
		keepHost(t, host, key)
		a.WasKnown = false
	}
}

// UserKeys returns the certificates and keys to offer, of the agent and of files, and a function
// that closes the connection to the agent.
func (a *Access) UserKeys() ([]*auth.UserKey, func(), error) {
	t, log := a.Target, a.Log
	ofAgent, closeAgent := agentKeys(t, log)
	keys, skipped := identityKeys(t, ofAgent, log)
	for _, err := range skipped {
		var unprotected *auth.UnprotectedError
		switch {
		case errors.As(err, &unprotected):
			warnUnprotected(unprotected)
		case len(keys) == 0:
			closeAgent()
			return nil, func() {}, errors.Join(skipped...)
		}
	}
	return permitted(t, withCertificates(t, keys, ofAgent, log), log), closeAgent, nil
}

// withCertificates returns the certificates to offer, and keys behind them.
func withCertificates(t *Target, keys, agentKeys []*auth.UserKey, log *slog.Logger) []*auth.UserKey {
	certificates, skipped := auth.Certificates(keys, agentKeys, t.Certificates, t.IdentitiesOnly)
	for _, err := range skipped {
		log.Debug("certificate skipped", "error", err)
	}
	return slices.Concat(certificates, keys)
}

// permitted returns the keys that ssh's configuration lets a target have, if no user is there, without those that need
// a touch.
func permitted(t *Target, keys []*auth.UserKey, log *slog.Logger) []*auth.UserKey {
	rules := auth.KeyRules{Algorithms: t.UserKeyAlgorithms, MinRSA: t.MinRSA}
	keys = slices.DeleteFunc(keys, func(k *auth.UserKey) bool {
		return rules.Check(k.Public) != nil || t.unattended && needsTouch(k.Public.Type())
	})
	for _, k := range keys {
		log.Debug("key to offer", "source", k.Source, "key", ssh.FingerprintSHA256(k.Public))
	}
	return keys
}

// agentKeys returns the keys and certificates of the agent, and a function that closes the connection to it.
func agentKeys(t *Target, log *slog.Logger) ([]*auth.UserKey, func()) {
	if t.Agent == "" {
		return nil, func() {}
	}
	keys, closeAgent, err := auth.AgentKeys(t.Agent)
	if err != nil {
		log.Debug("no agent", "error", err)
		return nil, func() {}
	}
	return keys, closeAgent
}

// identityKeys returns the keys of the agent and of files, and why files were skipped.
func identityKeys(t *Target, agentKeys []*auth.UserKey, log *slog.Logger) (keys []*auth.UserKey, skipped []error) {
	ask := AskSecret
	if t.Batch {
		ask = func(string) ([]byte, error) { return nil, errBatch }
	}
	keys, skipped = auth.UserKeys(agentKeys, t.Identities, t.IdentitiesOnly, ask)
	for _, err := range skipped {
		log.Debug("identity file skipped", "error", err)
	}
	return keys, skipped
}
