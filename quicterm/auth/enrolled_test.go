package auth

import (
	"bytes"
	"crypto/ed25519"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func enrolledKey() *Enrolled {
	signer := signer(ed25519.NewKeyFromSeed(make([]byte, 32)))
	return &Enrolled{
		Key: signer.PublicKey().Marshal(), Kind: KindShare, Name: "the phone of ann", By: signer.PublicKey().Marshal(),
		Made: 1700000000, Expires: 1700003600, Session: strings.Repeat("0f", 16), Types: true, Once: true,
	}
}

// A line comes back as it was written, and sshd has no use for it.
func TestEnrolledLine(t *testing.T) {
	link, device := enrolledKey(), enrolledKey()
	link.Kind, link.Session, link.Types, link.Once, link.By, link.ByKind = KindLink, "", false, false, nil, "token"
	*device = *link
	device.Kind, device.Expires = KindDevice, 0
	for _, e := range []*Enrolled{enrolledKey(), link, device} {
		line := e.Line()
		got, err := ParseEnrolled(line)
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
		s := NewSearch([]Query{{Key: e.Key}}, time.Unix(e.Made, 0))
		s.Read("authorized_keys", line)
		if v := s.Verdicts()[0]; v.Allowed != nil {
			t.Errorf("in authorized_keys: %+v", v)
		}
		for end := range len(bytes.TrimSpace(line)) {
			if e, err := ParseEnrolled(line[:end]); err == nil && e.Name == device.Name {
				t.Errorf("the first %d bytes: %+v", end, e)
			}
		}
	}
}

// What cannot be enrolled is refused.
func TestEnrolledCheck(t *testing.T) {
	for name, change := range map[string]func(*Enrolled){
		"no key":                func(e *Enrolled) { e.Key = nil },
		"a key of DSA":          func(e *Enrolled) { e.Key = append([]byte("\x00\x00\x00\x07ssh-dss"), make([]byte, 16)...) },
		"no kind":               func(e *Enrolled) { e.Kind = "" },
		"no name":               func(e *Enrolled) { e.Name = "" },
		"two lines":             func(e *Enrolled) { e.Name = "a\nb" },
		"an escape":             func(e *Enrolled) { e.Name = "a\x1b[m" },
		"a space":               func(e *Enrolled) { e.Name = " a" },
		"a long name":           func(e *Enrolled) { e.Name = strings.Repeat("a", maxKeyName+1) },
		"by nobody":             func(e *Enrolled) { e.By = nil },
		"by two":                func(e *Enrolled) { e.ByKind = "ssh" },
		"a long issuer":         func(e *Enrolled) { e.By = make([]byte, MaxEnrolledLine) },
		"no session":            func(e *Enrolled) { e.Session = "" },
		"a quote":               func(e *Enrolled) { e.Session = `",x="` },
		"a share without end":   func(e *Enrolled) { e.Expires = 0 },
		"a device with an end":  func(e *Enrolled) { e.Kind, e.Session, e.Types, e.Once = KindDevice, "", false, false },
		"a device of a session": func(e *Enrolled) { e.Kind, e.Expires = KindDevice, 0 },
		"before 1970":           func(e *Enrolled) { e.Made = -1 },
	} {
		e := enrolledKey()
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
		if change(e); e.Check() == nil {
			t.Errorf("%s is accepted: %+v", name, e)
		}
		if p := (&Permissions{Enrolled: e}); p.Valid() {
			t.Errorf("%s is valid in an answer", name)
		}
	}
}

func FuzzParseEnrolled(f *testing.F) {
	f.Add(enrolledKey().Line())
	f.Add(ssh.MarshalAuthorizedKey(signer(ed25519.NewKeyFromSeed(make([]byte, 32))).PublicKey()))
	f.Fuzz(func(t *testing.T, content []byte) {
		e, err := ParseEnrolled(content)
		if err != nil {
			return
		}
		again, err := ParseEnrolled(e.Line())
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%q is %+v, and that is %+v, %v", content, e, again, err)
		}
	})
}
