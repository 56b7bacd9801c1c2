//go:build linux || darwin

package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/account"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxAnswers bounds how often a client may try a signature, or ask which keys are
// accepted: as the default of MaxAuthTries of sshd.
const maxAnswers = 6

// authenticate reads messages, from first on, until the client has proven who it is,
// and returns its request, which the client may send before its proof.
func (c *conn) authenticate(ctx context.Context, first wire.Message) (request wire.Message, err error) {
	hello, err := decodeHello(first)
	if err != nil {
		return request, err
	}
	c.software = hello.Software
	if hello.User != "" {
		c.log = c.log.With("account", wire.Printable(hello.User, maxLoggedName))
	}
	if c.local != nil {
		c.account, c.allowed, c.scope = c.local.account, *c.local.allowed, c.local.allowed.Scope(nil)
		c.proof, c.provenAt = "ssh", time.Now()
	}
	authenticated, requested := c.local != nil, false
	for answers := 0; !authenticated || !requested; {
		m, err := wire.Read(c.carrier, wire.MaxMessage)
		if err != nil {
			return request, fmt.Errorf("authentication: %w", err)
		}
		c.askedAt = time.Now()
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
			err := c.checkAnswer(ctx, hello, &answer)
			if authenticated = err == nil; !authenticated {
				if answers++; answers >= maxAnswers {
					return request, fmt.Errorf("%d answers failed, the last: %w", answers, err)
				}
				c.log.Debug("answer failed", "error", err)
				if err := c.offer(ctx, hello); err != nil {
					return request, err
				}
			}
		case wire.TypeHello:
			next, err := decodeHello(m)
			if err != nil {
				return request, err
			}
			if !hello.More {
				return request, errors.New("another hello from a client without more keys")
			}
			if answers++; answers > maxAnswers {
				return request, fmt.Errorf("%d of the client's keys are not accepted", maxAnswers)
			}
			c.earlier += len(hello.Keys)
			hello.Keys, hello.More, c.keys = next.Keys, next.More, authorized{}
			if err := c.offer(ctx, hello); err != nil {
				return request, err
			}
		default:
			if requested {
				return request, errors.New("a second request before authentication")
			}
			request, requested = m, true
			if !authenticated && answers == 0 && len(hello.Keys) > 0 {
				// The client waits to learn which of its keys the account accepts.
				answers++
				if err := c.offer(ctx, hello); err != nil {
					return request, err
				}
			}
		}
	}
	return request, nil
}

// maxLoggedName is how many bytes of the name of an account that a client asks for are logged: the
// longest name on Linux has 32.
const maxLoggedName = 64

// decodeHello decodes a Hello with a number of keys that is allowed.
func decodeHello(m wire.Message) (*wire.Hello, error) {
	hello := new(wire.Hello)
	if err := m.Decode(hello); err != nil {
		return nil, err
	}
	if len(hello.Keys) > wire.MaxKeys {
		return nil, fmt.Errorf("offer of %d keys, at most %d are accepted", len(hello.Keys), wire.MaxKeys)
	}
	return hello, nil
}

// redeem accepts a token as proof.
func (c *conn) redeem(ctx context.Context, token []byte) error {
	uid, err := c.server.tokens.Redeem(time.Now(), token)
	if err != nil {
		return err
	}
	if c.account, err = c.server.names.LookupID(ctx, uid); err != nil {
		return fmt.Errorf("token of user id %d: %w", uid, err)
	}
	if err := checkExpired(c.account); err != nil {
		return err
	}
	allowed, err := c.server.tokenPermissions(ctx, c.account, c.address(), c.carrier.LocalAddr().Addr())
	if err != nil {
		return fmt.Errorf("account %s: %w", c.account.Name, err)
	}
	c.allowed, c.scope = *allowed, allowed.Scope(nil)
	c.proof, c.provenAt = "token", time.Now()
	return nil
}

// offer tells the client which of its keys the account accepts. It fails if the account
// accepts none, unless the client has more.
func (c *conn) offer(ctx context.Context, hello *wire.Hello) error {
	offer, err := c.accepted(ctx, hello)
	if err != nil && !hello.More {
		return err
	}
	if err != nil {
		c.log.Debug("keys not accepted", "error", err)
		c.awaitDenial()
	}
	return wire.Send(c.carrier, offer)
}

// accepted returns the keys of a Hello that the account accepts. The error says why there
// are none.
func (c *conn) accepted(ctx context.Context, hello *wire.Hello) (*wire.Offer, error) {
	offer := new(wire.Offer)
	a, err := c.lookup(ctx, hello.User)
	if err != nil {
		return offer, err
	}
	verdicts, err := c.authorize(ctx, a, hello.Keys)
	if err != nil {
		return offer, err
	}
	var refused error
	for i, blob := range hello.Keys {
		if err := verdicts[i].Refused; err == nil {
			offer.Keys = append(offer.Keys, blob)
		} else {
			refused, c.tried = err, fingerprint(blob)
		}
	}
	if len(offer.Keys) == 0 {
		return offer, fmt.Errorf("none of %d keys is accepted for %s, the last: %w", len(hello.Keys), hello.User, refused)
	}
	c.server.unauthenticated.know(c.pending) // its user may be asked for a touch or a passphrase
	return offer, nil
}

// fingerprint returns the fingerprint of what a client has sent as a public key: of the key, if that
// is a certificate.
func fingerprint(blob []byte) string {
	if key, err := auth.ParseUserKey(blob); err == nil {
		return ssh.FingerprintSHA256(auth.PlainKey(key))
	}
	sum := sha256.Sum256(blob)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// lookup returns the account of the given name. It fails if the server does not serve
// it.
func (c *conn) lookup(ctx context.Context, user string) (*account.Account, error) {
	a, err := c.server.names.Lookup(account.WithSource(ctx, c.pending.site.String()), user)
	if err != nil {
		return nil, fmt.Errorf("account %.64q: %w", user, err)
	}
	if !c.server.serves(a.UID) {
		return nil, fmt.Errorf("account %s: this daemon serves %s only", a.Name, c.server.self.Name)
	}
	if err := checkExpired(a); err != nil {
		return nil, err
	}
	return a, nil
}

// errExpired is the error of an account whose expiration date has passed.
var errExpired = errors.New("account has expired")

// checkExpired returns nil if an account has not expired. An error other than errExpired says that
// this cannot be known now.
func checkExpired(a *account.Account) error {
	expired, err := a.Expired(time.Now())
	if expired {
		err = errExpired
	}
	if err != nil {
		return fmt.Errorf("account %s: %w", a.Name, err)
	}
	return nil
}

// checkAnswer accepts a signature as proof.
func (c *conn) checkAnswer(ctx context.Context, hello *wire.Hello, answer *wire.Answer) error {
	c.tried = fingerprint(answer.Key)
	i := slices.IndexFunc(hello.Keys, func(k []byte) bool { return bytes.Equal(k, answer.Key) })
	if i < 0 {
		return errors.New("answer by a key that was not offered")
	}
	a, err := c.lookup(ctx, hello.User)
	if err != nil {
		return err
	}
	key, err := auth.ParseUserKey(answer.Key)
	if err != nil {
		return err
	}
	verdicts, err := c.authorize(ctx, a, hello.Keys)
	if err != nil {
		return err
	}
	allowed := verdicts[i].Allowed
	if allowed == nil {
		return verdicts[i].Refused
	}
	keys, ok := c.carrier.(carrier.KeyExporter)
	if !ok {
		return errors.New("signature on a carrier without keys")
	}
	if err := auth.VerifyUser(keys, hello.User, key, answer.Signature, allowed.Verified); err != nil {
		return err
	}
	c.account, c.allowed, c.scope = a, *allowed, allowed.Scope(key)
	c.key = answer.Key
	c.proof, c.provenAt = fingerprint(answer.Key), time.Now()
	return nil
}

// authorizedTime is how long what the account allows the keys of a client is used: the
// answer to an Offer takes longer only if a person is asked for something, and then a key
// may have been removed since.
const authorizedTime = 5 * time.Second

// An authorized has what an account allows the keys of a client.
type authorized struct {
	account  string
	verdicts []auth.Verdict // in the order of the keys of Hello
	at       time.Time
}

// authorize returns what an account allows the keys of a client's Hello. It refuses the keys after
// too many that are refused, as sshd does not look at them.
func (c *conn) authorize(ctx context.Context, a *account.Account, keys [][]byte) ([]auth.Verdict, error) {
	if c.keys.account == a.Name && time.Since(c.keys.at) < authorizedTime {
		return c.keys.verdicts, nil
	}
	by := claim{account: a, from: c.address(), at: c.carrier.LocalAddr().Addr(), tried: c.earlier}
	decided, err := c.server.authorize(ctx, by, keys...)
	if err != nil {
		return nil, err
	}
	tried := c.earlier
	for i, v := range decided.verdicts {
		if v.Allowed != nil && tried >= decided.tries {
			decided.verdicts[i] = auth.Verdict{Refused: fmt.Errorf("%d keys before it are refused: MaxAuthTries", tried)}
		} else if v.Allowed == nil {
			tried++
		}
	}
	c.keys = authorized{a.Name, decided.verdicts, time.Now()}
	return decided.verdicts, nil
}
