package auth

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Permissions are what a line of authorized_keys allows its key. The zero value
// allows everything.
type Permissions struct {
	Command  string // runs instead of what the client asks for
	NoPTY    bool
	Verified bool // a security key must have verified its user
}

// Scope names what a key with a command of its own may touch: only sessions
// that were made with the same key. It is empty for all other keys.
func (p *Permissions) Scope(key ssh.PublicKey) string {
	if p.Command == "" {
		return ""
	}
	return hex.EncodeToString([]byte(ssh.FingerprintSHA256(key)))
}

// An OptionError is the refusal of a key because of an option of its line that
// forbids it here and now, or that this server cannot honour.
type OptionError struct {
	Option string
	Why    string
}

func (e *OptionError) Error() string { return fmt.Sprintf("option %s: %s", e.Option, e.Why) }

// ErrNotAuthorized means that a key is in no line of an authorized_keys file.
var ErrNotAuthorized = errors.New("key is not in authorized_keys")

// Authorize looks a key up in the content of an authorized_keys file (sshd(8)),
// for a client at the given address. The first line that has the key and whose
// options allow it counts. Lines that make no sense are skipped, as in sshd.
func Authorize(content []byte, key ssh.PublicKey, from netip.Addr, now time.Time) (*Permissions, error) {
	failed := ErrNotAuthorized
	wanted := key.Marshal()
	for line := range bytes.Lines(content) {
		found, _, options, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil || !bytes.Equal(found.Marshal(), wanted) {
			continue
		}
		p, err := permissions(options, from, now)
		if err == nil {
			return p, nil
		}
		failed = err
	}
	return nil, failed
}

// permissions applies the options of a line.
func permissions(options []string, from netip.Addr, now time.Time) (*Permissions, error) {
	p := new(Permissions)
	for _, option := range options {
		name, value, err := splitOption(option)
		if err != nil {
			return nil, err
		}
		refuse := func(why string) error { return &OptionError{Option: name, Why: why} }
		switch name {
		case "command":
			if p.Command != "" || value == "" {
				return nil, refuse("must be given once, with a command")
			}
			p.Command = value
		case "restrict", "no-pty":
			p.NoPTY = true
		case "pty":
			p.NoPTY = false
		case "verify-required":
			p.Verified = true
		case "from":
			if !matchAddress(value, from) {
				return nil, refuse(fmt.Sprintf("does not allow %v", from))
			}
		case "expiry-time":
			until, err := parseExpiry(value)
			if err != nil {
				return nil, refuse(err.Error())
			}
			if !now.Before(until) {
				return nil, refuse("has passed")
			}
		case "agent-forwarding", "no-agent-forwarding",
			"port-forwarding", "no-port-forwarding", "permitopen", "permitlisten",
			"x11-forwarding", "no-x11-forwarding",
			"tunnel",
			"user-rc", "no-user-rc",
			"no-touch-required":
			// There is no forwarding, tunnel or rc file here to be allowed or
			// not; and a touch is always required.
		default:
			return nil, refuse("is not supported by quicterm")
		}
	}
	return p, nil
}

// flags are the options that take no value.
var flags = []string{
	"restrict", "pty", "no-pty", "verify-required", "no-touch-required",
	"agent-forwarding", "no-agent-forwarding", "port-forwarding", "no-port-forwarding",
	"x11-forwarding", "no-x11-forwarding", "user-rc", "no-user-rc",
}

// splitOption splits name="value", and undoes the quoting of the value: a
// backslash stands before a quote only, and before each quote in it.
func splitOption(option string) (name, value string, err error) {
	name, quoted, hasValue := strings.Cut(option, "=")
	name = strings.ToLower(name)
	refuse := func(why string) (string, string, error) {
		return "", "", &OptionError{Option: name, Why: why}
	}
	if !hasValue {
		return name, "", nil
	}
	if slices.Contains(flags, name) {
		return refuse("takes no value")
	}
	if len(quoted) < 2 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
		return refuse("its value is not in quotes")
	}
	value = quoted[1 : len(quoted)-1]
	if bare := strings.ReplaceAll(value, `\"`, ""); strings.Contains(bare, `"`) || strings.HasSuffix(bare, `\`) {
		return refuse("its value has a quote without a backslash")
	}
	return name, strings.ReplaceAll(value, `\"`, `"`), nil
}

// matchAddress matches an address against the patterns of a from option: glob
// patterns, addresses and address/length, with ! before those that must not
// match. Host names match nothing, because addresses are not looked up.
func matchAddress(patterns string, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	matched := false
	for pattern := range strings.SplitSeq(strings.ToLower(patterns), ",") {
		pattern, negated := strings.CutPrefix(strings.TrimSpace(pattern), "!")
		var matches bool
		if prefix, err := netip.ParsePrefix(pattern); err == nil {
			matches = prefix.Contains(addr)
		} else if one, err := netip.ParseAddr(pattern); err == nil {
			matches = one.Unmap().WithZone("") == addr
		} else {
			// What is no pattern of addresses may be the name of this host:
			// negated, that is a match, so that nobody is let in whom the
			// line meant to keep out.
			matches = globMatch(pattern, addr.String()) || negated && !isAddressGlob(pattern)
		}
		if matches && negated {
			return false
		}
		matched = matched || matches
	}
	return matched
}

// isAddressGlob reports whether a pattern can only match addresses.
func isAddressGlob(pattern string) bool {
	digits := "0123456789."
	if strings.Contains(pattern, ":") {
		digits = "0123456789abcdef.:"
	}
	return strings.ContainsAny(pattern, "*?") && strings.Trim(pattern, digits+"*?") == ""
}

// globMatch matches a string against a pattern of ssh: * stands for any bytes
// and ? for one.
func globMatch(pattern, s string) bool {
	p, i := 0, 0
	star, from := -1, 0 // the last * and where what it stands for ends
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0: // it stands for one byte more
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// parseExpiry parses the forms of expiry-time: YYYYMMDD and YYYYMMDDHHMM with
// optional seconds, in the server's time zone or with a Z behind in UTC.
func parseExpiry(s string) (time.Time, error) {
	location := time.Local
	digits, utc := strings.CutSuffix(s, "Z")
	if utc {
		location = time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(digits) == len(layout) {
			return time.ParseInLocation(layout, digits, location)
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time", s)
}
