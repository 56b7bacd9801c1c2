package auth

import (
	"bytes"
	"encoding/base64"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
)

// A Query asks what an authorized_keys file allows a key, for a client at an address.
type Query struct {
	Key  []byte // in the form of RFC 4253, 6.6
	From netip.Addr
}

// A Verdict answers a Query.
type Verdict struct {
	Allowed *Permissions // nil if the key is refused
	Refused error        // why
}

// A Search answers queries in one pass over each authorized_keys file (sshd(8)). The first
// line with a key whose options allow it counts.
type Search struct {
	queries  []Query
	now      time.Time
	wanted   map[string][]int // the numbers of the queries for a key, in base64
	verdicts []Verdict
}

// NewSearch returns a search in which no file was read.
func NewSearch(queries []Query, now time.Time) *Search {
	s := &Search{
		queries:  queries,
		now:      now,
		wanted:   make(map[string][]int),
		verdicts: slices.Repeat([]Verdict{{Refused: ErrNotAuthorized}}, len(queries)),
	}
	for i, q := range queries {
		text := base64.StdEncoding.EncodeToString(q.Key)
		s.wanted[text] = append(s.wanted[text], i)
	}
	return s
}

// Verdicts returns the answers after all files that were read, in the order of the queries.
func (s *Search) Verdicts() []Verdict { return s.verdicts }

// Read reads the content of the next file. Like sshd, it skips lines that it cannot parse.
func (s *Search) Read(content []byte) {
	for line := range bytes.Lines(content) {
		if s.mentions(line) {
			s.readLine(line)
		}
	}
}

// mentions reports whether a line has a wanted key in it, perhaps in a comment or an
// option. Parsing a line takes some 50 times longer.
func (s *Search) mentions(line []byte) bool {
	for field := range bytes.FieldsSeq(line) {
		if _, found := s.wanted[string(field)]; found {
			return true
		}
	}
	return false
}

func (s *Search) readLine(line []byte) {
	key, _, options, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return
	}
	for _, i := range s.wanted[base64.StdEncoding.EncodeToString(key.Marshal())] {
		v := &s.verdicts[i]
		if v.Allowed == nil {
			v.Allowed, v.Refused = permissions(options, s.queries[i].From, s.now)
		}
	}
}
