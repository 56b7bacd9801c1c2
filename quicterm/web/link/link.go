// Package link is how a page gets in: the link that qt prints for it, and the keys that it proves itself by. One is in the
// link, and one is made and kept by the browser, which gives it to no program. The package knows no connection and no
// browser.
//
// All that a link says is in its fragment, which a browser sends to no server:
//
//	https://host/#k=HASH&e=SEED&u=anna&h=server&n=api
//
//	k  the host's key: its SHA-256, base64url. The page trusts no other.
//	e  the seed of the key that logs in, base64url; nothing if the browser has a key
//	u  the account
//	h  what people call the host
//	n  the session to attach to, or nothing
//	g  of a guest: "types" or "watches". The server decides; this is for the guest.
//	x  until when the guest may, Unix seconds
package link

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// A Link leads a browser to a page that logs in by itself.
type Link struct {
	Page    string // its URL
	HostKey auth.HostID
	Seed    *Seed // nil if the browser has a key
	User    string
	Host    string
	Session string
	Share   *Share // for a guest, or nil
}

// A Share says what the link of a guest is for.
type Share struct {
	Types bool
	Until time.Time
}

// A Seed makes the key of a link. Who has it can log in until the server has ended the key.
type Seed [ed25519.SeedSize]byte

// NewSeed returns a seed of a new key.
func NewSeed() *Seed {
	s := new(Seed)
	rand.Read(s[:]) // never fails
	return s
}

// Signer returns the key.
func (s *Seed) Signer() ssh.Signer {
	signer, err := ssh.NewSignerFromSigner(ed25519.NewKeyFromSeed(s[:]))
	if err != nil {
		panic(err) // it is a key of Ed25519
	}
	return signer
}

var encoding = base64.RawURLEncoding

// String returns the link, which is a secret.
func (l *Link) String() string {
	b := new(strings.Builder)
	b.WriteString(l.Page + "#k=" + encoding.EncodeToString(l.HostKey[:]))
	if l.Seed != nil {
		b.WriteString("&e=" + encoding.EncodeToString(l.Seed[:]))
	}
	for _, field := range [][2]string{{"u", l.User}, {"h", l.Host}, {"n", l.Session}} {
		if field[1] != "" {
			b.WriteString("&" + field[0] + "=" + url.QueryEscape(field[1]))
		}
	}
	if l.Share != nil {
		b.WriteString("&g=" + does(l.Share.Types) + "&x=" + strconv.FormatInt(l.Share.Until.Unix(), 10))
	}
	return b.String()
}

func does(types bool) string {
	if types {
		return "types"
	}
	return "watches"
}

// maxFragment bounds what is parsed of a link, in bytes.
const maxFragment = 2 << 10

// errIncomplete is the error of a link that was cut or changed.
var errIncomplete = errors.New("the link is not complete: open it again as it was given to you")

// Parse returns the link with a fragment, without its page.
func Parse(fragment string) (*Link, error) {
	if len(fragment) > maxFragment {
		return nil, errIncomplete
	}
	fields, err := url.ParseQuery(fragment)
	if err != nil {
		return nil, errIncomplete
	}
	l := &Link{User: fields.Get("u"), Host: fields.Get("h"), Session: fields.Get("n")}
	if !decode(l.HostKey[:], fields.Get("k")) || l.User == "" {
		return nil, errIncomplete
	}
	if seed := fields.Get("e"); seed != "" {
		l.Seed = new(Seed)
		if !decode(l.Seed[:], seed) {
			return nil, errIncomplete
		}
	}
	if g := fields.Get("g"); g != "" {
		until, err := strconv.ParseInt(fields.Get("x"), 10, 64)
		l.Share = &Share{g == does(true), time.Unix(until, 0)}
		if err != nil || g != does(l.Share.Types) {
			return nil, errIncomplete
		}
	}
	return l, nil
}

// decode decodes as many bytes as there are to.
func decode(to []byte, text string) bool {
	b, err := encoding.DecodeString(text)
	return err == nil && len(b) == copy(to, b) && len(b) == len(to)
}
