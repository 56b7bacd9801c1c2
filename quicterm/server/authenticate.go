//go:build linux || darwin

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
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
		c.login, c.provenAt = &c.local.Login, time.Now()
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
			if errors.As(err, &c.refusal) {
				return request, err
			}
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
			hello.Keys, hello.More = next.Keys, next.More
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
func (c *conn) redeem(ctx context.Context, token []byte) (err error) {
	c.login, err = c.server.monitor.Redeem(ctx, &privsep.Token{Token: token, Path: c.path()})
	c.provenAt = time.Now()
	return err
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

// accepted returns the keys of a Hello that the account accepts. The error says why there are none.
func (c *conn) accepted(ctx context.Context, hello *wire.Hello) (*wire.Offer, error) {
	offer := new(wire.Offer)
	verdicts, err := c.server.monitor.Offer(ctx, c.offered(hello))
	if err != nil {
		return offer, err
	}
	c.sealed = verdicts.Sealed
	refused := ""
	for i, blob := range hello.Keys {
		if i >= len(verdicts.Refused) {
			break
		}
		if why := verdicts.Refused[i]; why != "" {
			refused, c.tried = why, blob
		} else {
			offer.Keys = append(offer.Keys, blob)
		}
	}
	if len(offer.Keys) == 0 {
		return offer, fmt.Errorf("none of %d keys is accepted for %s, the last: %s", len(hello.Keys), hello.User, refused)
	}
	offer.Time = verdicts.Time               // only now: without keys, it would tell that the account exists
	c.server.unauthenticated.know(c.pending) // its user may be asked for a touch or a passphrase
	return offer, nil
}

// offered returns what the monitor is asked about a client's keys.
func (c *conn) offered(hello *wire.Hello) *privsep.Offer {
	return &privsep.Offer{Attempt: c.attempt, Source: c.pending.Site.String(), User: hello.User, Keys: hello.Keys,
		Path: c.path(), Earlier: c.earlier, Sealed: c.sealed}
}

// checkAnswer accepts a signature as proof.
func (c *conn) checkAnswer(ctx context.Context, hello *wire.Hello, answer *wire.Answer) error {
	c.tried = answer.Key
	i := slices.IndexFunc(hello.Keys, func(k []byte) bool { return bytes.Equal(k, answer.Key) })
	if i < 0 {
		return errors.New("answer by a key that was not offered")
	}
	encrypted, ok := c.carrier.(auth.Encrypted)
	if !ok {
		return errors.New("signature on a carrier without keys")
	}
	exporter, err := auth.Exporter(encrypted.TLS())
	if err != nil {
		return err
	}
	proof := &privsep.Proof{
		Offer: *c.offered(hello), Key: i, Host: answer.Host, Time: answer.Time, Exporter: exporter,
		Signature: answer.Signature,
	}
	c.login, err = c.server.monitor.Prove(ctx, proof)
	c.provenAt = time.Now()
	return err
}
