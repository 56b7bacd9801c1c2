package hub

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	// MaxList bounds the list of a hub in bytes: 100 000 lines with keys of Ed25519.
	MaxList = 16 << 20

	// maxLine bounds a line of the list in bytes: an RSA key of 8192 bits has 1.4 KiB.
	maxLine = 4 << 10
)

// A Member is a line of a hub's list: whom a key belongs to.
type Member struct {
	Host bool // or a person
	Name string
	Tags []string // sorted
	Key  ssh.PublicKey
}

// Sees reports whether a person may see a host: one without tags sees all, others those with a tag of theirs.
func (m *Member) Sees(host *Member) bool {
	return !m.Host && host.Host &&
		(len(m.Tags) == 0 || slices.ContainsFunc(m.Tags, func(tag string) bool { return slices.Contains(host.Tags, tag) }))
}

// Equal reports whether two lines say the same.
func (m *Member) Equal(o *Member) bool {
	return m.Host == o.Host && m.Name == o.Name && slices.Equal(m.Tags, o.Tags) && bytes.Equal(m.Key.Marshal(), o.Key.Marshal())
}

// A List says which keys a hub lets in.
type List struct {
	Members map[UserID]*Member
	Hosts   []*Member // one of each name, sorted
}

// ParseList reads a list: lines of "host NAME[,tag…] KEY" and "person NAME[,tag…] KEY", where KEY is as in
// authorized_keys, without options. Empty lines and those that begin with # say nothing. The last line must have an end,
// so that a list that is being written does not pass. A host's name may have several keys, with the same tags.
func ParseList(content []byte) (*List, error) {
	if len(content) > MaxList {
		return nil, fmt.Errorf("it has more than %d bytes", MaxList)
	}
	if len(content) > 0 && content[len(content)-1] != '\n' {
		return nil, errors.New("its last line has no end: is it being written?")
	}
	l := &List{Members: make(map[UserID]*Member)}
	hosts := make(map[string]*Member)
	n := 0
	for line := range bytes.Lines(content) {
		n++
		text := strings.TrimSpace(string(line[:min(len(line), maxLine+1)]))
		if text == "" || text[0] == '#' {
			continue
		}
		m, err := parseMember(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		id := UserIDOf(m.Key)
		if l.Members[id] != nil {
			return nil, fmt.Errorf("line %d: its key is in the list twice", n)
		}
		l.Members[id] = m
		if !m.Host {
			continue
		}
		if other := hosts[m.Name]; other == nil {
			hosts[m.Name] = m
			l.Hosts = append(l.Hosts, m)
		} else if !slices.Equal(other.Tags, m.Tags) {
			return nil, fmt.Errorf("line %d: host %s has other tags before", n, m.Name)
		}
	}
	slices.SortFunc(l.Hosts, func(a, b *Member) int { return strings.Compare(a.Name, b.Name) })
	return l, nil
}

func parseMember(text string) (*Member, error) {
	if len(text) > maxLine {
		return nil, fmt.Errorf("more than %d bytes", maxLine)
	}
	kind, rest, _ := strings.Cut(text, " ")
	if kind != "host" && kind != "person" {
		return nil, errors.New(`want "host" or "person" first`)
	}
	names, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	parts := strings.Split(names, ",")
	m := &Member{Host: kind == "host", Name: parts[0], Tags: slices.Clone(parts[1:])}
	if err := CheckName(m.Name); err != nil {
		return nil, err
	}
	if len(m.Tags) > MaxTags {
		return nil, fmt.Errorf("more than %d tags", MaxTags)
	}
	for _, tag := range m.Tags {
		if err := CheckTag(tag); err != nil {
			return nil, err
		}
	}
	slices.Sort(m.Tags)
	m.Tags = slices.Compact(m.Tags)
	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(rest))
	switch {
	case err != nil:
		return nil, errors.New("no key behind the name; want one as in authorized_keys")
	case len(options) > 0:
		return nil, errors.New("a key with options, which a hub does not know")
	}
	if _, ok := key.(*ssh.Certificate); ok {
		return nil, errors.New("a certificate in place of a key")
	}
	m.Key = key
	return m, nil
}
