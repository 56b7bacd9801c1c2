//go:build linux || darwin

package sshd

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/forward/permit"
)

// AcceptKey returns why a key or certificate does not get in, or nil. Only an error that wraps
// ErrRefused is definite.
func (p *Policy) AcceptKey(key ssh.PublicKey) error {
	accepted := func(algorithm string) bool { return auth.MatchList(p.algorithms, algorithm) > 0 }
	switch {
	case !p.keys:
		return p.refusal("PubkeyAuthentication no")
	case !slices.Contains(p.methods, "any") && !slices.Contains(p.methods, "publickey"):
		return unsupported("AuthenticationMethods " + strings.Join(p.methods, " "))
	case p.algorithms != "" && !slices.ContainsFunc(auth.Algorithms(key.Type()), accepted):
		return p.refusal("PubkeyAcceptedAlgorithms does not have " + key.Type())
	}
	if size := auth.BitsRSA(key); size > 0 && size < p.minRSA {
		return p.refusal("RequiredRSASize " + strconv.Itoa(p.minRSA))
	}
	revoked, err := p.revoked.has(p.revokedKeys, key)
	if err != nil {
		return fmt.Errorf("RevokedKeys cannot be read: %w", err)
	}
	if revoked {
		return p.refusal("RevokedKeys has it")
	}
	return nil
}

// AcceptCommand returns why a login does not get in whose key has a command, or none, or nil.
func (p *Policy) AcceptCommand(uid uint32, command string) error {
	if uid == 0 && p.rootLogin == "forced-commands-only" && command == "" {
		return p.refusal("PermitRootLogin forced-commands-only")
	}
	return nil
}

// Restrict returns permissions of a key with those of the policy.
func (p *Policy) Restrict(allowed *auth.Permissions) *auth.Permissions {
	restricted := *allowed
	restricted.Command = cmp.Or(p.command, restricted.Command)
	restricted.NoPTY = restricted.NoPTY || p.noTerminal
	restricted.Verified = restricted.Verified || slices.Contains(p.keyOptions, "verify-required")
	restricted.Forward = restricted.Forward.And(p.forwards())
	restricted.SFTP = p.sftp
	return &restricted
}

// forwards returns what the policy permits to forward.
func (p *Policy) forwards() permit.Rules {
	rules := p.forward
	if p.opens != nil && !slices.Contains(p.opens, "any") {
		rules.Dials = []permit.List{p.opens}
	}
	if p.listens != nil && !slices.Contains(p.listens, "any") {
		rules.Listens = []permit.List{p.listens}
	}
	if p.noForward {
		rules.Refuse()
		rules.NoAgent = true
	}
	if p.gateway != "no" {
		rules.Gateway = p.gateway
	}
	mask, err := strconv.ParseUint(p.mask, 8, 9)
	if err == nil {
		rules.Mask = fs.FileMode(mask)
	}
	rules.Unlink = !p.noUnlink
	return rules
}

// MaxTries is how many keys a client may try in vain.
func (p *Policy) MaxTries() int {
	return p.maxTries
}
