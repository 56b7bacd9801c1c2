package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/forward/permit"
)

// maxCommand is the length of the longest command of a key, in bytes.
const maxCommand = 64 << 10

// Permissions are what a line of authorized_keys allows. The zero value allows
// everything.
type Permissions struct {
	Command  string // runs instead of the command that the client asks for
	NoPTY    bool
	Verified bool // a security key must verify its user

	Forward permit.Rules // see Forwards

	SFTP string `json:",omitempty"` // the program of sshd's Subsystem sftp, or NoSFTP; see Files

	Enrolled *Enrolled `json:",omitempty"` // the key is one that a login has enrolled
}

// Guest reports whether the key is of a guest, who may use one session alone.
func (p *Permissions) Guest() bool { return p.Enrolled != nil && p.Enrolled.Kind == KindShare }

// Valid reports whether a line of authorized_keys, or of an enrolled key, can allow this.
func (p *Permissions) Valid() bool {
	if p.Enrolled != nil && p.Enrolled.Check() != nil {
		return false
	}
	return len(p.Forward.Encode()) <= permit.MaxBytes && len(p.Command) <= maxCommand &&
		utf8.ValidString(p.Command) && !strings.Contains(p.Command, "\x00")
}

// Forwards returns what may be forwarded. Whom a command confines reaches no unix socket: at its other end, for instance
// the daemon's, such a client would be taken for the account.
func (p *Permissions) Forwards() permit.Rules {
	rules := p.Forward
	if p.Command != "" {
		rules.NoDialSocket, rules.NoListenSocket = true, true
	}
	return rules
}

// isVariable reports whether sshd accepts the name of a variable in a line.
func isVariable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// Scope returns the scope of a key with a command: such a key can only use sessions that
// were made with the same key and the same command, since sessions made before the command
// was changed still run the old one. It is empty for all other keys. A nil key stands for a
// token; a certificate, which is renewed often, for its key.
func (p *Permissions) Scope(key ssh.PublicKey) string {
	if p.Command == "" {
		return ""
	}
	var blob []byte
	if key != nil {
		blob = PlainKey(key).Marshal()
	}
	sum := sha256.New()
	sum.Write(binary.BigEndian.AppendUint32(nil, uint32(len(blob))))
	sum.Write(blob)
	sum.Write([]byte(p.Command))
	return hex.EncodeToString(sum.Sum(nil))
}

// An optionError is the error of a key that an option of its line refuses now, or whose
// option this server does not implement.
type optionError struct {
	Option string
	Why    string
}

func (e *optionError) Error() string { return fmt.Sprintf("option %s: %s", e.Option, e.Why) }

// ErrNotAuthorized is the error of a key that is in no authorized_keys file.
var ErrNotAuthorized = errors.New("key is not in authorized_keys")

// A line is what the options in front of a key or a principal say.
type line struct {
	Permissions
	authority  bool     // the key is an authority, and lets in the certificates that it has signed
	principals []string // whose certificates; nil for those of the account's name
}

// readOptions applies the options of a line, for a client at an address.
func readOptions(options []string, from netip.Addr, now time.Time) (*line, error) {
	l := new(line)
	var opens, listens permit.List
	given := make(map[string]bool)
	for _, option := range options {
		name, value, err := splitOption(option)
		if err != nil {
			return nil, err
		}
		refuse := func(why string) error { return &optionError{Option: name, Why: why} }
		if given[name] && slices.Contains(once, name) {
			return nil, refuse("must be given once")
		}
		given[name] = true
		switch name {
		case "command":
			if value == "" {
				return nil, refuse("names no command")
			}
			if l.Command = value; !l.Valid() {
				return nil, refuse(fmt.Sprintf("must be UTF-8, without NUL, of at most %d bytes", maxCommand))
			}
		case "environment":
			if variable, _, found := strings.Cut(value, "="); !found || !isVariable(variable) {
				return nil, refuse("must be NAME=value") // it sets nothing, as PermitUserEnvironment no in sshd
			}
		case "cert-authority":
			l.authority = true
		case "principals":
			l.principals = strings.Split(value, ",")
		case "restrict":
			l.NoPTY = true
			l.Forward.Refuse()
			l.Forward.NoAgent = true
		case "no-pty":
			l.NoPTY = true
		case "pty":
			l.NoPTY = false
		case "verify-required":
			l.Verified = true
		case "no-verify-required":
			l.Verified = false
		case "from":
			matches, err := matchFrom(value, from)
			if err != nil {
				return nil, refuse(err.Error())
			}
			if !matches {
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
		case "no-port-forwarding":
			l.Forward.Refuse()
		case "port-forwarding":
			l.Forward = permit.Rules{NoAgent: l.Forward.NoAgent}
		case "no-agent-forwarding":
			l.Forward.NoAgent = true
		case "agent-forwarding":
			l.Forward.NoAgent = false
		case "permitopen":
			opens, err = append(opens, value), permit.Check(value, false)
		case "permitlisten":
			listens, err = append(listens, value), permit.Check(value, true)
		case "tunnel":
			if _, err := strconv.ParseUint(value, 10, 31); err != nil && value != "any" {
				return nil, refuse("is malformed")
			}
		default: // this server has no tunnels or rc files, and always requires a touch
			if !slices.Contains(flags, name) {
				return nil, refuse("is not supported by quicterm")
			}
		}
		if err != nil {
			return nil, refuse(err.Error())
		}
	}
	if len(opens) > 0 {
		l.Forward.Dials = []permit.List{opens}
	}
	if len(listens) > 0 {
		l.Forward.Listens = []permit.List{listens}
	}
	if len(l.Forward.Encode()) > permit.MaxBytes {
		return nil, &optionError{Option: "permitopen", Why: "there are too many"}
	}
	if l.principals != nil && !l.authority {
		return nil, &optionError{Option: "principals", Why: "is for a cert-authority"}
	}
	return l, nil
}

// once are the options that a line has once.
var once = []string{"command", "from", "principals"}

// flags are the options without a value.
var flags = []string{
	"restrict", "pty", "no-pty", "cert-authority",
	"verify-required", "no-verify-required", "touch-required", "no-touch-required",
	"agent-forwarding", "no-agent-forwarding", "port-forwarding", "no-port-forwarding",
	"x11-forwarding", "no-x11-forwarding", "user-rc", "no-user-rc",
}

// splitOption splits name="value" and unquotes the value, in which each quote has a
// backslash before it, and nothing else has.
func splitOption(option string) (name, value string, err error) {
	name, quoted, hasValue := strings.Cut(option, "=")
	name = strings.ToLower(name)
	refuse := func(why string) (string, string, error) {
		return "", "", &optionError{Option: name, Why: why}
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

// matchFrom matches an address against the patterns of a from option. Host names match no address: there is no reverse
// lookup. Behind an !, a pattern that is not of addresses may be the name of this client, so it refuses the client.
func matchFrom(list string, addr netip.Addr) (bool, error) {
	var patterns []string
	named := false
	for pattern := range strings.SplitSeq(strings.ToLower(list), ",") {
		pattern = strings.TrimSpace(pattern)
		patterns = append(patterns, pattern)
		name, negated := strings.CutPrefix(pattern, "!")
		network, err := ParseNetwork(name)
		named = named || negated && err == nil && !network.IsValid() && !isAddressGlob(name)
	}
	matched, err := MatchAddresses(strings.Join(patterns, ","), addr)
	return matched > 0 && !named, err
}

// isAddressGlob reports whether a pattern can only match addresses.
func isAddressGlob(pattern string) bool {
	digits := "0123456789."
	if strings.Contains(pattern, ":") {
		digits = "0123456789abcdef.:"
	}
	return strings.ContainsAny(pattern, "*?") && strings.Trim(pattern, digits+"*?") == ""
}

// parseExpiry parses expiry-time: YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, in the
// server's time zone, or in UTC with Z or UTC at the end, in letters of either size.
func parseExpiry(s string) (time.Time, error) {
	location := time.Local
	digits := s
	for _, zone := range []string{"Z", "UTC"} {
		if rest, found := strings.CutSuffix(strings.ToUpper(s), zone); found {
			digits, location = rest, time.UTC
		}
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(digits) == len(layout) {
			return time.ParseInLocation(layout, digits, location)
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: use YYYYMMDD or YYYYMMDDHHMM", s)
}
