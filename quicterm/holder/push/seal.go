//go:build linux || darwin

package push

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"golang.org/x/time/rate"

	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxEndpoint bounds a URL in bytes: the longest that are known have some hundred.
	maxEndpoint = 2 << 10

	authSize = 16
	saltSize = 16

	// recordSize is the size of all messages in bytes, before they are sealed: what is in one cannot be told by that.
	recordSize = 512

	// sealedSize is what the header of a sealed message says of its records, of which there is one.
	sealedSize = 4096

	// tokenTime is how long a signature is good. Push services accept a day.
	tokenTime = 12 * time.Hour

	// subject tells operators of push services whom they may ask about messages.
	subject = "https://github.com/quicterm/quicterm"
)

// A subscription is where a device gets messages, and by which keys.
type subscription struct {
	endpoint *url.URL
	key      *ecdh.PublicKey
	auth     []byte
	signer   *ecdsa.PrivateKey
	rate     *rate.Limiter
	busy     bool // a message is under way; the mutex of the Sender guards it
}

// parse checks a subscription.
func parse(n *wire.Notify) (*subscription, error) {
	if len(n.Endpoint) > maxEndpoint {
		return nil, fmt.Errorf("an endpoint of %d bytes, more than %d", len(n.Endpoint), maxEndpoint)
	}
	u, err := url.Parse(n.Endpoint)
	switch {
	case err != nil: // it has the URL in it, which is a secret
		return nil, errors.New("the endpoint is no URL")
	case u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Port() != "" && u.Port() != httpsPort:
		return nil, errors.New("the endpoint is not at port 443 by HTTPS")
	case len(n.Auth) != authSize:
		return nil, fmt.Errorf("a secret of %d bytes", len(n.Auth))
	}
	s := &subscription{endpoint: u, auth: n.Auth, rate: rate.NewLimiter(rate.Every(interval), maxBurst)}
	if s.key, err = ecdh.P256().NewPublicKey(n.Key); err != nil {
		return nil, fmt.Errorf("the key of the device: %w", err)
	}
	if s.signer, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), n.Signer); err != nil {
		return nil, fmt.Errorf("the key that signs: %w", err)
	}
	return s, nil
}

// pad returns a message as the only record.
func pad(message []byte) ([]byte, error) {
	if len(message) >= recordSize {
		return nil, fmt.Errorf("a message of %d bytes", len(message))
	}
	record := make([]byte, recordSize)
	record[copy(record, message)] = 2 // the last record
	return record, nil
}

// seal seals a record for the device: RFC 8291, 3.4, and RFC 8188, 2. The key and the salt are for this record alone.
func (s *subscription) seal(record []byte, own *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	shared, err := own.ECDH(s.key)
	if err != nil {
		return nil, err
	}
	public := own.PublicKey().Bytes()
	secret, err := hkdf.Key(sha256.New, shared, s.auth, "WebPush: info\x00"+string(s.key.Bytes())+string(public), sha256.Size)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	b := binary.BigEndian.AppendUint32(append([]byte(nil), salt...), sealedSize)
	b = append(append(b, byte(len(public))), public...)
	return gcm.Seal(b, nonce, record, nil), nil
}

// sealOnce is seal with a new key and salt.
func (s *subscription) sealOnce(record []byte) ([]byte, error) {
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, saltSize)
	rand.Read(salt) // never fails
	return s.seal(record, own, salt)
}

var encoding = base64.RawURLEncoding

// authorization proves to the push service that the message is of whom the device has subscribed for: RFC 8292.
func (s *subscription) authorization(now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{
		"aud": "https://" + s.endpoint.Host, "exp": now.Add(tokenTime).Unix(), "sub": subject,
	})
	if err != nil {
		return "", err
	}
	token := encoding.EncodeToString([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + encoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(token))
	r, t, err := ecdsa.Sign(rand.Reader, s.signer, sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	t.FillBytes(signature[32:])
	public, err := s.signer.PublicKey.Bytes()
	if err != nil {
		return "", err
	}
	return "vapid t=" + token + "." + encoding.EncodeToString(signature) + ", k=" + encoding.EncodeToString(public), nil
}
