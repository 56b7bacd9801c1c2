package hub

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// maxURL bounds the URL of a hub in bytes.
const maxURL = 512

// pinPrefix begins the fragment of a URL that names the hub's key.
const pinPrefix = "sha256:"

// An Address is where a hub is, and who it is.
type Address struct {
	Host   string // the name or IP address in the URL, in small letters
	Port   string
	Pin    [sha256.Size]byte // the hash of the hub's SubjectPublicKeyInfo, if Pinned
	Pinned bool              // the certificate has that key; otherwise one of the system's authorities vouches for it
}

// ParseAddress reads the URL of a hub: "https://name[:port]", and "#sha256:HASH" if it is known by its key.
func ParseAddress(text string) (*Address, error) {
	fail := func(why string) (*Address, error) {
		return nil, fmt.Errorf("hub %.80q: %s; want https://name, https://name:port or https://name:port#sha256:…", text, why)
	}
	if len(text) > maxURL {
		return fail("too long")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fail("not a URL")
	case u.Scheme != "https":
		return fail("not https")
	case u.User != nil || u.RawQuery != "" || u.Path != "" && u.Path != "/" || u.Hostname() == "":
		return fail("more than a name and a port")
	case !only(strings.ToLower(u.Hostname()), "-.:"):
		return fail("a name that is none")
	}
	a := &Address{Host: strings.ToLower(u.Hostname()), Port: u.Port()}
	if a.Port == "" {
		a.Port = "443"
	}
	if u.Fragment == "" {
		return a, nil
	}
	hash, ok := strings.CutPrefix(u.Fragment, pinPrefix)
	pin, err := base64.RawURLEncoding.DecodeString(hash)
	if !ok || err != nil || len(pin) != len(a.Pin) {
		return fail("a fragment that is not sha256: and the hash of a key")
	}
	a.Pinned = true
	copy(a.Pin[:], pin)
	return a, nil
}

// Join returns the host and the port as they are dialed.
func (a *Address) Join() string { return net.JoinHostPort(a.Host, a.Port) }

// String returns the URL.
func (a *Address) String() string {
	host := a.Join()
	if a.Port == "443" {
		host = strings.TrimSuffix(host, ":443")
	}
	text := "https://" + host
	if a.Pinned {
		text += "#" + pinPrefix + base64.RawURLEncoding.EncodeToString(a.Pin[:])
	}
	return text
}

// PinOf returns the hash of a certificate's key.
func PinOf(certificate *x509.Certificate) [sha256.Size]byte {
	return sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
}
