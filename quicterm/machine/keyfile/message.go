//go:build linux || darwin

package keyfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// A request is what a child is asked, as JSON.
type request struct {
	UID, GID uint32
	Groups   []uint32
	Home     string
	User     string
	Sources  *Sources
	Queries  []auth.Query
}

// An answer is what a child answers, as JSON. Its program is that of the daemon, so there are no versions of it.
type answer struct {
	Allowed  []json.RawMessage // permissions, each once
	Verdicts []verdict         // of the queries, in their order
	Problems string            // of the files that were not read
	Unread   bool              // some of them exist, or may
}

type verdict struct {
	Allowed int    // number of the permissions, from 1, or 0 if the key is refused
	Refused string // why
	Where   string // what allows the key
}

const (
	// maxReason is the length of the longest text of an error in an answer, in bytes.
	maxReason = 512

	// maxAnswer bounds an answer, in bytes: a file of the largest size with the commands of
	// all keys that are asked for is not served.
	maxAnswer = 1 << 20
)

// short returns the beginning of a text, at most maxReason bytes, as the log may have it.
func short(text string) string {
	text = strings.ToValidUTF8(text, "?")
	n := min(len(text), maxReason)
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// ErrUnread is the error of a key that may be in a file which exists and was not read.
var ErrUnread = errors.New("not all files were read")

// errAnswer is the error of an answer that no child of ours gives.
var errAnswer = errors.New("the answer of the process that reads keys is malformed")

// readAnswer reads an answer to a number of queries. The child ran as the account, so its
// answer is not trusted to be well-formed.
func readAnswer(r io.Reader, queries int) ([]auth.Verdict, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(b) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	if len(b) > maxAnswer {
		return nil, errAnswer
	}
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, errAnswer
	}
	if len(a.Verdicts) == 0 && a.Problems != "" && len(a.Problems) <= maxReason {
		return nil, errors.New(a.Problems)
	}
	if len(a.Verdicts) != queries || len(a.Problems) > maxReason || len(a.Allowed) > queries {
		return nil, errAnswer
	}
	allowed := make([]auth.Permissions, len(a.Allowed))
	for i, text := range a.Allowed {
		if err := json.Unmarshal(text, &allowed[i]); err != nil || !allowed[i].Valid() {
			return nil, errAnswer
		}
	}
	verdicts := make([]auth.Verdict, queries)
	for i, v := range a.Verdicts {
		switch {
		case v.Allowed < 0, v.Allowed > len(allowed), len(v.Refused) > maxReason, len(v.Where) > maxReason,
			(v.Allowed == 0) != (v.Refused != ""):
			return nil, errAnswer
		case v.Allowed > 0:
			p := allowed[v.Allowed-1]
			verdicts[i].Allowed, verdicts[i].Where = &p, v.Where
		case a.Unread:
			verdicts[i].Refused = fmt.Errorf("%s: %w: %s", v.Refused, ErrUnread, a.Problems)
		case a.Problems != "":
			verdicts[i].Refused = fmt.Errorf("%s: %s", v.Refused, a.Problems)
		default:
			verdicts[i].Refused = errors.New(v.Refused)
		}
	}
	return verdicts, nil
}

// search answers the queries of a request with the rights of this process.
func (r *request) search() (*answer, error) {
	enrolled, issuers := r.findEnrolled()
	s := auth.NewSearch(append(slices.Clone(r.Queries), issuers...), time.Now())
	s.User, s.CAAlgorithms = r.User, r.Sources.CAAlgorithms
	var problems []string
	unread := false
	for _, key := range enrolled {
		unread = unread || key.unread()
	}
	read := func(file string) ([]byte, error) {
		content, err := readOwn(file, r.UID, r.Home, r.Sources.Lax)
		if err != nil {
			problems = append(problems, err.Error())
			unread = unread || !errors.Is(err, fs.ErrNotExist)
		}
		return content, err
	}
	for _, file := range r.Sources.Files {
		if content, err := read(file); err == nil {
			s.Read(file, content)
		}
	}
	authorities, program := r.Sources.Authorities, r.Sources.Program
	switch {
	case program != nil:
		content, err := readProgram()
		if err != nil {
			return nil, err
		}
		s.Read(program.Argv[0], content)
	case authorities == nil:
	case r.Sources.Principals == "":
		s.Trust(authorities.Name, authorities.Keys)
	default:
		if content, err := read(r.Sources.Principals); err == nil {
			s.TrustPrincipals(r.Sources.Principals, authorities.Keys, content)
		}
	}
	a := &answer{Problems: short(strings.Join(problems, ", ")), Unread: unread}
	numbers := make(map[string]int) // of permissions
	for _, v := range r.enrolledVerdicts(s.Verdicts(), enrolled) {
		if v.Allowed == nil {
			a.Verdicts = append(a.Verdicts, verdict{Refused: short(v.Refused.Error())})
			continue
		}
		text, err := json.Marshal(v.Allowed)
		if err != nil {
			return nil, err
		}
		n := numbers[string(text)]
		if n == 0 {
			a.Allowed = append(a.Allowed, text)
			n = len(a.Allowed)
			numbers[string(text)] = n
		}
		a.Verdicts = append(a.Verdicts, verdict{Allowed: n, Where: short(v.Where)})
	}
	return a, nil
}
