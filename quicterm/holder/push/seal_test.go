//go:build linux || darwin

package push

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

func decode(t *testing.T, text string) []byte {
	t.Helper()
	b, err := encoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The example of RFC 8291, 5.
func TestSealAsRFC8291(t *testing.T) {
	s, err := parse(&wire.Notify{
		Endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
		Key:      decode(t, "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
		Auth:     decode(t, "BTBZMqHH6r4Tts7J_aSIgg"), Signer: newBrowser(t).signer,
	})
	if err != nil {
		t.Fatal(err)
	}
	own, err := ecdh.P256().NewPrivateKey(decode(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.seal([]byte("When I grow up, I want to be a watermelon\x02"), own, decode(t, "DGv6ra1nlYgDCS1FRnbzlw"))
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_" +
		"yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if err != nil || encoding.EncodeToString(got) != want {
		t.Errorf("%s, %v", encoding.EncodeToString(got), err)
	}
}

// A browser is the other end of a subscription.
type browser struct {
	key    *ecdh.PrivateKey
	auth   []byte
	signer []byte
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	auth := make([]byte, authSize)
	rand.Read(auth)
	return &browser{key, auth, signer.Bytes()}
}

func (b *browser) notify(endpoint string) *wire.Notify {
	return &wire.Notify{Endpoint: endpoint, Key: b.key.PublicKey().Bytes(), Auth: b.auth, Signer: b.signer}
}

// open opens a message as a browser does, with the padding.
func (b *browser) open(t *testing.T, sealed []byte) []byte {
	t.Helper()
	salt, public, text := sealed[:16], sealed[21:21+65], sealed[21+65:]
	from, err := ecdh.P256().NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := b.key.ECDH(from)
	if err != nil {
		t.Fatal(err)
	}
	expand := func(secret, salt []byte, info string, size int) []byte {
		key, err := hkdf.Key(sha256.New, secret, salt, info, size)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	secret := expand(shared, b.auth, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(public), 32)
	block, err := aes.NewCipher(expand(secret, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	record, err := gcm.Open(nil, expand(secret, salt, "Content-Encoding: nonce\x00", 12), text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// proven checks the signature that comes with a message.
func (b *browser) proven(t *testing.T, authorization, audience string) {
	t.Helper()
	signer, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), b.signer)
	if err != nil {
		t.Fatal(err)
	}
	public, err := signer.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	token, key, _ := strings.Cut(strings.TrimPrefix(authorization, "vapid t="), ", k=")
	parts := strings.Split(token, ".")
	if len(parts) != 3 || !bytes.Equal(decode(t, key), public) {
		t.Fatalf("authorization: %s", authorization)
	}
	signature, sum := decode(t, parts[2]), sha256.Sum256([]byte(parts[0]+"."+parts[1]))
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	if len(signature) != 64 || !ecdsa.Verify(&signer.PublicKey, sum[:], r, s) {
		t.Error("the signature is not of the key that the device has subscribed for")
	}
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err := json.Unmarshal(decode(t, parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(time.Unix(claims.Exp, 0)); claims.Aud != audience || claims.Sub == "" || left <= 0 || left > 24*time.Hour {
		t.Errorf("the claims are %+v", claims)
	}
}

// What is no subscription is refused before anything is sent.
func TestParse(t *testing.T) {
	good := newBrowser(t).notify("https://push.example/x")
	if _, err := parse(good); err != nil {
		t.Fatal(err)
	}
	for _, endpoint := range []string{
		"http://push.example/", "https://push.example:8443/", "https://user:secret@push.example/", "https:///x", "https://",
		"ftp://push.example/", "//push.example/", "file:///etc/passwd", "https://%zz/", "https://push.example/" + strings.Repeat("x", maxEndpoint),
	} {
		n := *good
		n.Endpoint = endpoint
		if s, err := parse(&n); err == nil {
			t.Errorf("%.40s is taken as %v", endpoint, s.endpoint)
		} else if strings.Contains(err.Error(), "push.example") || strings.Contains(err.Error(), "zz") {
			t.Errorf("the error has the endpoint, which is a secret: %v", err)
		}
	}
	for _, field := range []func(*wire.Notify) *[]byte{
		func(n *wire.Notify) *[]byte { return &n.Key },
		func(n *wire.Notify) *[]byte { return &n.Auth },
		func(n *wire.Notify) *[]byte { return &n.Signer },
	} {
		for size := range 70 {
			n := *good
			if *field(&n) = make([]byte, size); size == authSize && field(&n) == &n.Auth {
				continue
			}
			if _, err := parse(&n); err == nil {
				t.Errorf("%d zeros are taken for a key: %+v", size, n)
			}
		}
	}
}
