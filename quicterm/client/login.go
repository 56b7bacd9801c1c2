package client

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// authenticate sends everything that is probably needed at once: in the best case the first
// thing that comes back is the answer to the request. Over a tunnel, the server needs no proof.
func (c *Client) authenticate(conn carrier.Carrier, tunnel bool, token []byte, request wire.Message) (wire.Message, error) {
	keys, left := c.offerable(c.cfg.Keys)
	if tunnel {
		keys, left = nil, nil
	}
	hello := func() *wire.Hello {
		h := &wire.Hello{Software: c.cfg.Software, User: c.cfg.User, More: len(left) > 0}
		for _, k := range keys {
			h.Keys = append(h.Keys, k.Public.Marshal())
		}
		return h
	}
	tried := make(map[string]bool) // after an Offer, or in vain
	answer := func(k *auth.UserKey, at []byte) (*wire.Answer, error) {
		encrypted, ok := conn.(auth.Encrypted)
		if !ok {
			return nil, errors.New("a signature needs an encrypted connection")
		}
		statement, err := auth.NewStatement(encrypted.TLS(), c.cfg.User, at)
		if err != nil {
			return nil, err
		}
		signature, err := k.Sign(statement)
		return &wire.Answer{Key: k.Public.Marshal(), Signature: signature, Host: statement.Host[:], Time: at}, err
	}
	var flight []byte
	add := func(v wire.Body) error {
		m, err := wire.New(v)
		flight = m.Append(flight)
		return err
	}
	err := add(hello())
	switch {
	case tunnel: // the server knows who we are
	case token != nil:
		err = errors.Join(err, add(&wire.Token{Token: token}))
	case keys[0].Silent():
		// If this machine's clock is wrong, an Offer asks for the key again.
		if a, signErr := answer(keys[0], auth.ClientTime(time.Now())); signErr == nil {
			err = errors.Join(err, add(a))
		} else {
			tried[string(keys[0].Public.Marshal())] = true
		}
	}
	if err != nil {
		return wire.Message{}, err
	}
	if _, err := conn.Write(request.Append(flight)); err != nil {
		return wire.Message{}, &BrokenOffError{err}
	}
	var failed error
	for {
		m, err := wire.Read(conn, wire.MaxMessage)
		if err != nil {
			return m, &BrokenOffError{err}
		}
		if m.Type == wire.TypeDenied {
			return m, &DeniedError{failed}
		}
		if m.Type != wire.TypeOffer {
			return m, nil
		}
		var offer wire.Offer
		if err := m.Decode(&offer); err != nil {
			return m, err
		}
		answered := false
		for _, k := range keys {
			blob := k.Public.Marshal()
			offered := slices.ContainsFunc(offer.Keys, func(o []byte) bool { return bytes.Equal(o, blob) })
			if tried[string(blob)] || !offered {
				continue
			}
			tried[string(blob)] = true
			a, err := answer(k, auth.ServerTime(offer.Time))
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			if err := wire.Send(conn, a); err != nil {
				return m, &BrokenOffError{err}
			}
			answered = true
			break
		}
		switch {
		case answered:
		case len(left) == 0:
			return m, &DeniedError{failed}
		default:
			keys, left = c.offerable(left)
			if err := wire.Send(conn, hello()); err != nil {
				return m, err
			}
		}
	}
}

// offerable returns the first keys to offer to the server, and those that are left.
func (c *Client) offerable(keys []*auth.UserKey) (first, left []*auth.UserKey) {
	if c.cfg.OneByOne {
		n := min(len(keys), 1)
		return keys[:n], keys[n:]
	}
	return keys[:min(len(keys), wire.MaxKeys)], nil
}
