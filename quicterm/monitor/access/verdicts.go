//go:build linux || darwin

package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

const (
	// verdictsTime is how long what an account allows the keys of an attempt is used: the answer to an Offer takes
	// longer only if a person is asked for something, and then a key may have been removed since.
	verdictsTime = 5 * time.Second

	// maxSealed bounds what is sealed, in bytes: 64 keys with short commands. What takes more, such as long commands, is
	// looked up again. The network half has it as long as a client without a login.
	maxSealed = 8 << 10
)

// A sealer makes the network half keep verdicts between an Offer and its Proof, so that the monitor keeps nothing for
// strangers. That half can neither read nor change them, and cannot use them for another Offer.
type sealer struct {
	aead  cipher.AEAD
	begun time.Time
}

// A sealed is what accounts allowed the keys of an Offer: nil for those that are refused.
type sealed struct {
	At      time.Duration // since the sealer began
	Allowed []*auth.Permissions
}

func newSealer() sealer {
	key := make([]byte, 32)
	rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // for keys of another size only
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // for other ciphers than AES only
	}
	return sealer{aead, time.Now()}
}

// seal returns sealed verdicts, or nothing if they are too long.
func (s *sealer) seal(o *privsep.Offer, verdicts []auth.Verdict) []byte {
	plain := sealed{At: time.Since(s.begun)}
	for _, v := range verdicts {
		plain.Allowed = append(plain.Allowed, v.Allowed)
	}
	text, err := json.Marshal(plain)
	if err != nil || len(text) > maxSealed {
		return nil
	}
	return s.aead.Seal(nil, nil, text, hashOffer(o))
}

// open returns what was sealed for an Offer, unless that is too old or there is nothing.
func (s *sealer) open(o *privsep.Offer) []*auth.Permissions {
	text, err := s.aead.Open(nil, nil, o.Sealed, hashOffer(o))
	var plain sealed
	if err != nil || json.Unmarshal(text, &plain) != nil || time.Since(s.begun)-plain.At >= verdictsTime {
		return nil
	}
	return plain.Allowed
}

// hashOffer returns the hash of all that verdicts depend on.
func hashOffer(o *privsep.Offer) []byte {
	h := sha256.New()
	add := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
		h.Write(b)
	}
	add(binary.BigEndian.AppendUint64(nil, o.Attempt))
	add(binary.BigEndian.AppendUint64(nil, uint64(o.Earlier)))
	add([]byte(o.User))
	add(fmt.Append(nil, o.Path.From(), o.Path.At()))
	for _, key := range o.Keys {
		add(key)
	}
	return h.Sum(nil)
}
