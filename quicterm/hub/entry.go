package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Bounds of an Entry, in bytes and numbers.
const (
	MaxName      = 64
	MaxTags      = 16
	MaxTag       = 32
	MaxKeys      = 8
	MaxAddresses = 16
	MaxEntry     = 4 << 10 // as JSON

	maxFingerprint = 64
	maxVersion     = 64
)

// An Entry is what a host says of itself, and the hub of the host.
type Entry struct {
	Name      string    `json:"name"`
	Tags      []string  `json:"tags,omitempty"` // those of the hub's list: what a host says is not used
	Keys      []string  `json:"keys,omitempty"` // fingerprints of the host keys, "SHA256:…"
	Version   string    `json:"version,omitempty"`
	Addresses []string  `json:"addresses,omitempty"` // "address:port" where the daemon may be reached directly
	Since     time.Time `json:"since,omitzero"`      // when the host has connected: set by the hub
}

// CheckName returns why a name cannot be that of a host or person, or nil.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName || !only(name, "-.") || strings.Trim(name, "-.") != name || strings.Contains(name, "..") {
		return fmt.Errorf("name %.80q: want 1 to %d of a-z, 0-9, \".\" and \"-\", with a letter or digit at both ends", name, MaxName)
	}
	return nil
}

// CheckTag returns why a text cannot be a tag, or nil.
func CheckTag(tag string) error {
	if tag == "" || len(tag) > MaxTag || !only(tag, "-._") {
		return fmt.Errorf("tag %.80q: want 1 to %d of a-z, 0-9, \".\", \"_\" and \"-\"", tag, MaxTag)
	}
	return nil
}

// only reports whether a text has small letters, digits and what is in more.
func only(text, more string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(more, r)
	})
}

// Check returns which bound the entry breaks, or nil. What passes has no character that controls a terminal.
func (e *Entry) Check() error {
	if err := CheckName(e.Name); err != nil {
		return err
	}
	switch {
	case len(e.Tags) > MaxTags:
		return fmt.Errorf("more than %d tags", MaxTags)
	case len(e.Keys) > MaxKeys:
		return fmt.Errorf("more than %d host keys", MaxKeys)
	case len(e.Addresses) > MaxAddresses:
		return fmt.Errorf("more than %d addresses", MaxAddresses)
	case len(e.Version) > maxVersion || !printable(e.Version):
		return errors.New("a version that is too long or not plain text")
	}
	for _, tag := range e.Tags {
		if err := CheckTag(tag); err != nil {
			return err
		}
	}
	for _, key := range e.Keys {
		if len(key) > maxFingerprint || !strings.HasPrefix(key, "SHA256:") || !printable(key) {
			return errors.New("a host key's fingerprint that is none")
		}
	}
	for _, address := range e.Addresses {
		if a, err := netip.ParseAddrPort(address); err != nil || a.Addr().Zone() != "" {
			return errors.New("an address that is not like 192.0.2.1:22 or [2001:db8::1]:22")
		}
	}
	return nil
}

// printable reports whether a text has visible ASCII characters and spaces alone.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// Encode returns the entry as a message, or why it is none.
func (e *Entry) Encode() ([]byte, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(e)
	if err == nil && len(b) > MaxEntry {
		err = fmt.Errorf("an entry of %d bytes, more than %d", len(b), MaxEntry)
	}
	return b, err
}

// ParseEntry reads an entry, and checks it. Fields that it does not know are of a later version, and are ignored.
func ParseEntry(message []byte) (*Entry, error) {
	if len(message) > MaxEntry {
		return nil, fmt.Errorf("an entry of %d bytes, more than %d", len(message), MaxEntry)
	}
	e := new(Entry)
	if err := json.Unmarshal(message, e); err != nil {
		return nil, errors.New("an entry that is not JSON of the right form")
	}
	return e, e.Check()
}
