package link

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// All of a link is in its fragment, and comes back from there. The same seed is the same key.
func TestLink(t *testing.T) {
	want := Link{
		Page: "https://server.example/", HostKey: auth.HostID(bytes.Repeat([]byte{0xfb}, 32)), Seed: NewSeed(),
		User: "anna", Host: "a server & more", Session: "api",
	}
	parsed, err := url.Parse(want.String())
	if err != nil || parsed.RawQuery != "" || parsed.Path != "/" {
		t.Fatalf("%s, %v", want.String(), err)
	}
	got, err := Parse(parsed.EscapedFragment())
	if err != nil {
		t.Fatal(err)
	}
	got.Page = want.Page
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v comes back as %+v", want, *got)
	}
	guest := want
	guest.Share = &Share{Types: true, Until: time.Unix(1700000000, 0)}
	_, fragment, _ := strings.Cut(guest.String(), "#")
	if got, err := Parse(fragment); err != nil || got.Share == nil || *got.Share != *guest.Share {
		t.Errorf("%s is of %+v, %v", fragment, got, err)
	}
	key := want.Seed.Signer().PublicKey().Marshal()
	again, other := got.Seed.Signer().PublicKey().Marshal(), NewSeed().Signer().PublicKey().Marshal()
	if !bytes.Equal(again, key) || bytes.Equal(other, key) {
		t.Error("a seed does not make its own key")
	}
}

// A link that was cut anywhere, or is another one, is refused.
func TestIncompleteLink(t *testing.T) {
	_, whole, _ := strings.Cut((&Link{Seed: NewSeed(), User: "u"}).String(), "#")
	for end := range len(whole) {
		if _, err := Parse(whole[:end]); err == nil {
			t.Errorf("%q is accepted", whole[:end])
		}
	}
	for _, fragment := range []string{
		"s=AAAA", whole + "%", whole + "&x=" + strings.Repeat("y", maxFragment),
		strings.Replace(whole, "k=A", "k=", 1), strings.Replace(whole, "&e=", "&e=A", 1),
		whole + "&g=owns&x=1", whole + "&g=types", whole + "&g=types&x=y",
	} {
		if _, err := Parse(fragment); err == nil {
			t.Errorf("%q is accepted", fragment)
		}
	}
}

func FuzzParse(f *testing.F) {
	_, whole, _ := strings.Cut((&Link{Seed: new(Seed), User: "u", Host: "h", Session: "n"}).String(), "#")
	f.Add(whole)
	f.Fuzz(func(t *testing.T, fragment string) {
		l, err := Parse(fragment)
		if err != nil {
			return
		}
		_, again, _ := strings.Cut(l.String(), "#")
		if back, err := Parse(again); err != nil || !reflect.DeepEqual(back, l) {
			t.Errorf("%q is %+v, and that is %+v, %v", fragment, l, back, err)
		}
	})
}

// webCrypto signs as crypto.subtle.sign does.
func webCrypto(t *testing.T) (public []byte, sign func([]byte) ([]byte, error)) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err == nil {
		public, err = private.PublicKey.Bytes()
	}
	if err != nil {
		t.Fatal(err)
	}
	return public, func(data []byte) ([]byte, error) {
		sum := sha256.Sum256(data)
		r, s, err := ecdsa.Sign(rand.Reader, private, sum[:])
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), err
	}
}

// The signatures of a browser's key are those of ssh, also if a half is short or has its first bit set.
func TestDeviceKey(t *testing.T) {
	public, sign := webCrypto(t)
	key, err := NewDeviceKey(public, sign)
	if err != nil {
		t.Fatal(err)
	}
	if key.PublicKey().Type() != ssh.KeyAlgoECDSA256 {
		t.Errorf("a key of type %s", key.PublicKey().Type())
	}
	for i := range 2000 { // a half has a leading zero once in 128
		data := []byte{byte(i), byte(i >> 8)}
		signature, err := key.Sign(rand.Reader, data)
		if err == nil {
			err = key.PublicKey().Verify(data, signature)
		}
		if err != nil {
			t.Fatalf("signature %d: %v", i, err)
		}
	}
	signature, err := auth.NewUserKey(key, "").Sign(&auth.Statement{Account: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&auth.Statement{Account: "anna"}).Verify(key.PublicKey(), signature, false); err != nil {
		t.Error(err)
	}
	if (&auth.Statement{Account: "otto"}).Verify(key.PublicKey(), signature, false) == nil {
		t.Error("a signature is of another statement too")
	}
}

// What is no point, or no signature, is an error.
func TestOtherDeviceKeys(t *testing.T) {
	public, _ := webCrypto(t)
	for _, wrong := range [][]byte{nil, public[:64], append(bytes.Clone(public), 0), make([]byte, 65)} {
		if _, err := NewDeviceKey(wrong, nil); err == nil {
			t.Errorf("%x is a key", wrong)
		}
	}
	refused := errors.New("refused")
	key, err := NewDeviceKey(public, func([]byte) ([]byte, error) { return nil, refused })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := key.Sign(rand.Reader, nil); !errors.Is(err, refused) {
		t.Error(err)
	}
	key, _ = NewDeviceKey(public, func([]byte) ([]byte, error) { return make([]byte, 63), nil })
	if _, err := key.Sign(rand.Reader, nil); err == nil {
		t.Error("a short signature is accepted")
	}
}
