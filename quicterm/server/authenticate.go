//go:build linux || darwin

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/account"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxAnswers bounds how often a client may try a signature, or ask which keys are
// accepted.
const maxAnswers = 6

// authenticate reads messages, from first on, until the client has proven who it is,
// and returns its request, which the client may send before its proof.
func (c *conn) authenticate(ctx context.Context, first wire.Message) (request wire.Message, err error) {
	var hello wire.Hello
	if err := first.Decode(&hello); err != nil {
		return request, err
	}
	if len(hello.Keys) > wire.MaxKeys {
		return request, fmt.Errorf("offer of %d keys, at most %d are accepted", len(hello.Keys), wire.MaxKeys)
	}
	c.software = hello.Software
	authenticated, requested := false, false
	for answers := 0; !authenticated || !requested; {
		m, err := wire.Read(c.carrier, wire.MaxMessage)
		if err != nil {
			return request, fmt.Errorf("authentication: %w", err)
		}
		switch m.Type {
		case wire.TypeToken:
			var token wire.Token
			if err := m.Decode(&token); err != nil {
				return request, err
			}
			if err := c.redeem(ctx, token.Token); err != nil {
				return request, err
			}
			authenticated = true
		case wire.TypeAnswer:
			var answer wire.Answer
			if err := m.Decode(&answer); err != nil {
				return request, err
			}
			err := c.checkAnswer(ctx, &hello, &answer)
			if authenticated = err == nil; !authenticated {
				if answers++; answers >= maxAnswers {
					return request, fmt.Errorf("%d answers failed, the last: %w", answers, err)
				}
				c.log.Debug("answer failed", "error", err)
				if err := c.offer(ctx, &hello); err != nil {
					return request, err
				}
			}
		default:
			if requested {
				return request, errors.New("a second request before authentication")
			}
			request, requested = m, true
			if !authenticated && answers == 0 && len(hello.Keys) > 0 {
				// The client waits to learn which of its keys the account accepts.
				answers++
				if err := c.offer(ctx, &hello); err != nil {
					return request, err
				}
			}
		}
	}
	return request, nil
}

// redeem accepts a token as proof.
func (c *conn) redeem(ctx context.Context, token []byte) error {
	uid, err := c.server.tokens.Redeem(time.Now(), token)
	if err != nil {
		return err
	}
	if c.account, err = account.LookupID(ctx, uid); err != nil {
		return fmt.Errorf("token of user id %d: %w", uid, err)
	}
	if c.account.Expired(time.Now()) {
		return fmt.Errorf("account %s has expired", c.account.Name)
	}
	c.proof = "token"
	return nil
}

// offer tells the client which of its keys the account accepts. It fails if the
// account accepts none.
func (c *conn) offer(ctx context.Context, hello *wire.Hello) error {
	var offer wire.Offer
	a, err := c.lookup(ctx, hello.User)
	if err != nil {
		return err
	}
	for _, blob := range hello.Keys {
		if _, _, err = c.authorize(ctx, a, blob); err == nil {
			offer.Keys = append(offer.Keys, blob)
		}
	}
	if len(offer.Keys) == 0 {
		return fmt.Errorf("none of %d keys is accepted for %s, the last: %w", len(hello.Keys), hello.User, err)
	}
	return wire.Send(c.carrier, &offer)
}

// lookup returns the account of the given name. It fails if the server does not serve
// it.
func (c *conn) lookup(ctx context.Context, user string) (*account.Account, error) {
	a, err := account.Lookup(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("account %.64q: %w", user, err)
	}
	if !c.server.serves(a.UID) {
		return nil, fmt.Errorf("account %s: this daemon serves %s only", a.Name, c.server.self.Name)
	}
	if a.Expired(time.Now()) {
		return nil, fmt.Errorf("account %s has expired", a.Name)
	}
	return a, nil
}

// checkAnswer accepts a signature as proof.
func (c *conn) checkAnswer(ctx context.Context, hello *wire.Hello, answer *wire.Answer) error {
	if !slices.ContainsFunc(hello.Keys, func(k []byte) bool { return bytes.Equal(k, answer.Key) }) {
		return errors.New("answer by a key that was not offered")
	}
	a, err := c.lookup(ctx, hello.User)
	if err != nil {
		return err
	}
	key, allowed, err := c.authorize(ctx, a, answer.Key)
	if err != nil {
		return err
	}
	if err := auth.VerifyUser(c.carrier.TLS(), hello.User, key, answer.Signature, allowed.Verified); err != nil {
		return err
	}
	c.account, c.allowed, c.scope = a, *allowed, allowed.Scope(key)
	c.proof = ssh.FingerprintSHA256(key)
	return nil
}

// authorize looks a key up in the authorized_keys files of an account.
func (c *conn) authorize(ctx context.Context, a *account.Account, blob []byte) (ssh.PublicKey, *auth.Permissions, error) {
	key, err := auth.ParseUserKey(blob)
	if err != nil {
		return nil, nil, err
	}
	files, failure := c.authorizedKeys(ctx, a)
	for _, content := range files {
		allowed, err := auth.Authorize(content, key, c.address(), time.Now())
		if err == nil {
			return key, allowed, nil
		}
		failure = err
	}
	return nil, nil, failure
}

// authorizedKeys has the contents of an account's authorized_keys files. A connection
// reads them once: reading takes a process and a thread.
type authorizedKeys struct {
	account string
	files   [][]byte
	missing error // the error for a key that is in none of the files
}

func (c *conn) authorizedKeys(ctx context.Context, a *account.Account) ([][]byte, error) {
	if c.keys.account == a.Name {
		return c.keys.files, c.keys.missing
	}
	c.keys = authorizedKeys{account: a.Name, missing: auth.ErrNotAuthorized}
	for _, pattern := range c.server.settings.AuthorizedKeysFiles {
		file := strings.NewReplacer("%%", "%", "%h", a.Home, "%u", a.Name).Replace(pattern)
		if !filepath.IsAbs(file) {
			file = filepath.Join(a.Home, file) // as sshd_config(5) says
		}
		content, err := a.ReadFile(ctx, file)
		if err != nil {
			c.keys.missing = fmt.Errorf("%w: %w", auth.ErrNotAuthorized, err)
			continue
		}
		c.keys.files = append(c.keys.files, content)
	}
	return c.keys.files, c.keys.missing
}
