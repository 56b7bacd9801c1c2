package auth

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// A Query asks what an authorized_keys file allows a key, for a client at an address.
type Query struct {
	Key  []byte // in the form of RFC 4253, 6.6, or a certificate of one
	From netip.Addr

	// Proven is when the client has proven that it has the certificate, or zero if it has not yet. As sshd keeps a
	// connection whose certificate expires, the certificate must have been valid then. All else counts as it is now.
	Proven time.Time
}

// A Verdict answers a Query.
type Verdict struct {
	Allowed *Permissions // nil if the key is refused
	Refused error        // why
	Where   string       // what allows the key: a file and a line
}

// A Search answers queries in one pass over each authorized_keys file (sshd(8)). The first
// line with a key, or with the authority of a certificate, whose options allow it counts.
type Search struct {
	User         string // the principal that certificates must name, unless a line names others
	CAAlgorithms string // by which authorities may sign, as patterns; empty for all that are secure

	queries      []Query
	certificates []*ssh.Certificate // of the queries; nil for a plain key
	now          time.Time
	wanted       map[string][]int // the numbers of the queries for a key or an authority, in base64
	verdicts     []Verdict
}

// NewSearch returns a search in which no file was read.
func NewSearch(queries []Query, now time.Time) *Search {
	s := &Search{
		queries:      queries,
		certificates: make([]*ssh.Certificate, len(queries)),
		now:          now,
		wanted:       make(map[string][]int),
		verdicts:     slices.Repeat([]Verdict{{Refused: ErrNotAuthorized}}, len(queries)),
	}
	for i, q := range queries {
		looked := q.Key
		if key, err := ssh.ParsePublicKey(q.Key); err == nil {
			if cert, ok := key.(*ssh.Certificate); ok {
				s.certificates[i], looked = cert, cert.SignatureKey.Marshal()
				s.verdicts[i].Refused = errAuthority
			}
		}
		text := base64.StdEncoding.EncodeToString(looked)
		s.wanted[text] = append(s.wanted[text], i)
	}
	return s
}

// errAuthority is the error of a certificate whose authority is not trusted.
var errAuthority = fmt.Errorf("%w, nor is the authority of its certificate trusted", ErrNotAuthorized)

// Verdicts returns the answers after all files that were read, in the order of the queries.
func (s *Search) Verdicts() []Verdict { return s.verdicts }

// Read reads the content of the next file with a name. Like sshd, it skips lines that it cannot parse.
func (s *Search) Read(name string, content []byte) {
	number := 0
	for text := range bytes.Lines(content) {
		number++
		if s.mentions(text) {
			s.readLine(fmt.Sprintf("%s:%d", name, number), text)
		}
	}
}

// mentions reports whether a line has a wanted key in it, perhaps in a comment or an
// option. Parsing a line takes some 50 times longer.
func (s *Search) mentions(text []byte) bool {
	for field := range bytes.FieldsSeq(text) {
		if _, found := s.wanted[string(field)]; found {
			return true
		}
	}
	return false
}

func (s *Search) readLine(where string, text []byte) {
	key, _, options, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return
	}
	for _, i := range s.wanted[base64.StdEncoding.EncodeToString(key.Marshal())] {
		s.decide(i, where, func() (*Permissions, error) {
			l, err := readOptions(options, s.queries[i].From, s.now)
			cert := s.certificates[i]
			switch {
			case err != nil:
				return nil, err
			case l.authority != (cert != nil):
				return nil, s.verdicts[i].Refused
			case cert == nil:
				return &l.Permissions, nil
			}
			principals := l.principals
			if principals == nil {
				principals = []string{s.User}
			}
			return s.certified(i, &l.Permissions, principals)
		})
	}
}

// decide replaces the answer to a query unless the key is allowed already.
func (s *Search) decide(i int, where string, allowed func() (*Permissions, error)) {
	v := &s.verdicts[i]
	if v.Allowed != nil {
		return
	}
	if v.Allowed, v.Refused = allowed(); v.Allowed != nil {
		v.Where = where
	}
}

// certified returns what a line allows the certificate of a query that names one of some principals.
func (s *Search) certified(i int, byLine *Permissions, principals []string) (*Permissions, error) {
	valid := s.now
	if proven := s.queries[i].Proven; !proven.IsZero() {
		valid = proven
	}
	allowed, err := checkUserCertificate(s.certificates[i], principals, s.CAAlgorithms, s.queries[i].From, valid)
	if err != nil {
		return nil, err
	}
	return merge(byLine, allowed)
}

// Trust reads authorities whose certificates are good for the account: public keys, one a line
// (TrustedUserCAKeys of sshd).
func (s *Search) Trust(name string, authorities []byte) {
	s.trust(name, authorities, func(i int) (*Permissions, error) {
		return s.certified(i, new(Permissions), []string{s.User})
	})
}

// TrustPrincipals is Trust for certificates that name a principal of a file: a name on each line,
// with options in front of it (AuthorizedPrincipalsFile of sshd).
func (s *Search) TrustPrincipals(name string, authorities, principals []byte) {
	s.trust(name, authorities, func(i int) (*Permissions, error) {
		refused := errors.New("the certificate names no principal of the account")
		for text := range bytes.Lines(principals) {
			text := strings.TrimSpace(string(text))
			if text == "" || text[0] == '#' {
				continue
			}
			principal := text[strings.LastIndexAny(text, " \t")+1:]
			if !slices.Contains(s.certificates[i].ValidPrincipals, principal) {
				continue
			}
			l, err := readOptions(splitOptions(strings.TrimSuffix(text, principal)), s.queries[i].From, s.now)
			if err == nil && l.authority {
				err = &optionError{Option: "cert-authority", Why: "is not for a principal"}
			}
			if err == nil {
				return s.certified(i, &l.Permissions, []string{principal})
			}
			refused = err
		}
		return nil, refused
	})
}

func (s *Search) trust(name string, authorities []byte, allowed func(i int) (*Permissions, error)) {
	for text := range bytes.Lines(authorities) {
		key, _, options, _, err := ssh.ParseAuthorizedKey(text)
		if err != nil || len(options) > 0 {
			continue
		}
		for _, i := range s.wanted[base64.StdEncoding.EncodeToString(key.Marshal())] {
			if s.certificates[i] != nil {
				s.decide(i, name, func() (*Permissions, error) { return allowed(i) })
			}
		}
	}
}

// splitOptions splits options at the start of a line, which commas separate and white space outside quotes ends.
func splitOptions(text string) (options []string) {
	quoted, start := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && text[i+1] == '"':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t'):
			return append(options, text[start:i])
		case !quoted && c == ',':
			options = append(options, text[start:i])
			start = i + 1
		}
	}
	if start < len(text) {
		options = append(options, text[start:])
	}
	return options
}
