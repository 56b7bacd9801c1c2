package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"
)

// The kinds of enrolled keys.
const (
	KindLink   = "link"   // for one login soon
	KindDevice = "device" // of a browser
	KindShare  = "share"  // of a guest, for one session
)

// Limits of an enrolled key.
const (
	// MaxEnrolledLine is the size of its line in bytes: enough for an RSA key of 16384 bits, or a usual certificate, that
	// has enrolled it.
	MaxEnrolledLine = 4 << 10

	// LinkTime is for how long a link is good: to take a phone out of a pocket.
	LinkTime = 2 * time.Minute

	// UnusedTime is how long a device may stay away.
	UnusedTime = 90 * 24 * time.Hour

	maxKeyName = 64 // bytes
)

// An Enrolled is a key that a login of the account has enrolled, as a line in the form of authorized_keys: the options
// that end in @quicterm are of no use to sshd.
type Enrolled struct {
	Key  []byte // RFC 4253, 6.6
	Kind string
	Name string // for people

	By     []byte // the key or certificate whose login has enrolled it
	ByKind string // how that has logged in if it had no key

	Made    int64  // Unix seconds, as Expires
	Expires int64  // 0 for never
	Session string // of a share: its id in hexadecimal digits
	Types   bool   // the guest types
	Once    bool   // it is good for one login

	Used int64 // not in the line: when it has logged in last, or Made
}

// enrolledTime is the form of expiry-time, in UTC.
const enrolledTime = "20060102150405Z"

// Line returns the line of a key that is valid.
func (e *Enrolled) Line() []byte {
	key, err := ssh.ParsePublicKey(e.Key)
	if err != nil {
		return nil
	}
	b := new(bytes.Buffer)
	by := e.ByKind
	if len(e.By) > 0 {
		by = base64.StdEncoding.EncodeToString(e.By)
	}
	fmt.Fprintf(b, `kind@quicterm="%s",by@quicterm="%s",made@quicterm="%d"`, e.Kind, by, e.Made)
	if e.Expires != 0 {
		fmt.Fprintf(b, `,expiry-time="%s"`, time.Unix(e.Expires, 0).UTC().Format(enrolledTime))
	}
	if e.Session != "" {
		fmt.Fprintf(b, `,session@quicterm="%s"`, e.Session)
	}
	if e.Types {
		b.WriteString(",type@quicterm")
	}
	if e.Once {
		b.WriteString(",once@quicterm")
	}
	fmt.Fprintf(b, " %s %s %s\n", key.Type(), base64.StdEncoding.EncodeToString(e.Key), e.Name)
	return b.Bytes()
}

// ParseEnrolled parses the content of a key's file. Whatever it does not know is an error.
func ParseEnrolled(content []byte) (*Enrolled, error) {
	line, more, _ := bytes.Cut(content, []byte("\n"))
	if len(content) > MaxEnrolledLine || len(more) > 0 {
		return nil, fmt.Errorf("not one line of at most %d bytes", MaxEnrolledLine)
	}
	key, name, options, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return nil, err
	}
	e := &Enrolled{Key: key.Marshal(), Name: name}
	var given []string
	for _, option := range options {
		name, value, err := splitOption(option)
		if err == nil && slices.Contains(given, name) {
			err = &optionError{Option: name, Why: "must be given once"}
		}
		if err == nil {
			err = e.set(name, value)
		}
		if err != nil {
			return nil, err
		}
		given = append(given, name)
	}
	return e, e.Check()
}

func (e *Enrolled) set(name, value string) (err error) {
	switch name {
	case "kind@quicterm":
		e.Kind = value
	case "by@quicterm":
		if value == "token" || value == "ssh" {
			e.ByKind = value
		} else {
			e.By, err = base64.StdEncoding.DecodeString(value)
		}
	case "made@quicterm":
		e.Made, err = strconv.ParseInt(value, 10, 64)
	case "expiry-time":
		var at time.Time
		if at, err = parseExpiry(value); err == nil {
			e.Expires = at.Unix()
		}
	case "session@quicterm":
		e.Session = value
	case "type@quicterm", "once@quicterm":
		if value != "" {
			err = errors.New("takes no value")
		}
		e.Types, e.Once = e.Types || name == "type@quicterm", e.Once || name == "once@quicterm"
	default:
		err = errors.New("is not one of an enrolled key")
	}
	if err != nil {
		return &optionError{Option: name, Why: err.Error()}
	}
	return nil
}

// Check returns why a key cannot be enrolled as it is, or nil.
func (e *Enrolled) Check() error {
	session, err := hex.DecodeString(e.Session)
	key, keyErr := ssh.ParsePublicKey(e.Key)
	share := e.Kind == KindShare
	switch {
	case keyErr != nil:
		return keyErr
	case key.Type() != ssh.KeyAlgoECDSA256 && key.Type() != ssh.KeyAlgoED25519:
		return fmt.Errorf("a key of type %s cannot be enrolled: ecdsa-sha2-nistp256 and ssh-ed25519 can", key.Type())
	case !slices.Contains([]string{KindLink, KindDevice, KindShare}, e.Kind):
		return fmt.Errorf("no kind of enrolled keys: %.32q", e.Kind)
	case !validKeyName(e.Name):
		return fmt.Errorf("the name of a key must be 1 to %d bytes that can be printed, without spaces around it", maxKeyName)
	case (len(e.By) > 0) == (e.ByKind != ""):
		return errors.New("it does not say who has enrolled the key")
	case e.Made <= 0, e.Expires < 0, (e.Kind == KindDevice) != (e.Expires == 0):
		return errors.New("the times of an enrolled key make no sense")
	case share != (err == nil && len(session) == 16), !share && (e.Types || e.Once):
		return errors.New("a share is of a session, and other keys are not")
	case len(e.Line()) > MaxEnrolledLine:
		return fmt.Errorf("the line of the key has more than %d bytes: the key that enrolls it is too long", MaxEnrolledLine)
	}
	return nil
}

func validKeyName(name string) bool {
	unprintable := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	return name != "" && len(name) <= maxKeyName && name == strings.TrimSpace(name) &&
		!strings.ContainsFunc(name, unprintable)
}

// Single reports whether the key is good for one login.
func (e *Enrolled) Single() bool { return e.Kind == KindLink || e.Once }

// Ended returns why a key is not good any more at a time, or nil. A login that a link has begun may last longer than the
// link.
func (e *Enrolled) Ended(now time.Time, begun bool) error {
	switch {
	case e.Expires != 0 && now.Unix() >= e.Expires && !(begun && e.Kind == KindLink):
		return fmt.Errorf("the %s has expired", e.Kind)
	case e.Kind != KindShare && now.Sub(time.Unix(e.Used, 0)) >= UnusedTime:
		return fmt.Errorf("the %s has not logged in for %d days", e.Kind, UnusedTime/(24*time.Hour))
	}
	return nil
}
