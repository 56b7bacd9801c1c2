//go:build linux || darwin

// Package account looks up the accounts of this machine, their groups, and whether they are locked or have expired. It
// asks the name service with the system's programs, within bounds, and keeps answers for a short while.
package account

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// An Account is a user of this machine.
type Account struct {
	Name     string
	UID, GID uint32
	Home     string
	Shell    string
}

// ErrUnknown is the error of a lookup of an account that does not exist, as far as the name
// service knows: one that does not reach its directory may not say so.
var ErrUnknown = errors.New("no such account")

// askable reports whether the name service is asked for a name: those that useradd allows, and the domain forms of
// directory services.
func askable(name string) bool {
	const first = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_."
	name = strings.TrimSuffix(name, "$")
	return name != "" && len(name) <= 64 && strings.Contains(first, name[:1]) && strings.Trim(name, first+`@\-`) == ""
}

// Lookup returns the account of the given name. It blocks while the name service is asked, until ctx ends.
func (n *NameService) Lookup(ctx context.Context, name string) (*Account, error) {
	if !askable(name) {
		return nil, ErrUnknown
	}
	return n.lookup(ctx, name, func(a *Account) bool { return a.Name == name })
}

// LookupID returns the account of the given user id. It blocks as Lookup does.
func (n *NameService) LookupID(ctx context.Context, uid uint32) (*Account, error) {
	return n.lookup(ctx, strconv.FormatUint(uint64(uid), 10), func(a *Account) bool { return a.UID == uid })
}

// Current returns the account that this process runs as. It blocks as Lookup does.
func (n *NameService) Current(ctx context.Context) (*Account, error) {
	return n.LookupID(ctx, uint32(os.Getuid()))
}

func parsePasswd(line string) (*Account, error) {
	f := strings.Split(line, ":")
	if len(f) != 7 || f[0] == "" {
		return nil, fmt.Errorf("not a passwd line: %q", line)
	}
	uid, err := strconv.ParseUint(f[2], 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(f[3], 10, 32)
	if err != nil {
		return nil, err
	}
	a := &Account{Name: f[0], UID: uint32(uid), GID: uint32(gid), Home: f[5], Shell: f[6]}
	if a.Shell == "" {
		a.Shell = "/bin/sh" // passwd(5)
	}
	return a, nil
}

func scanPasswd(b []byte, match func(*Account) bool) *Account {
	for line := range strings.Lines(string(b)) {
		if a, err := parsePasswd(strings.TrimRight(line, "\r\n")); err == nil && match(a) {
			return a
		}
	}
	return nil
}

// groupIDs returns the ids of all groups that an account is in; this process of it may have others. It blocks as Lookup
// does.
func (n *NameService) groupIDs(ctx context.Context, a *Account) ([]uint32, error) {
	out, err := n.ask(ctx, "id", "-G", "--", a.Name)
	if err != nil {
		return nil, fmt.Errorf("groups of %s: %w", a.Name, err)
	}
	var groups []uint32
	for field := range strings.FieldsSeq(string(out)) {
		gid, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("groups of %s: %w", a.Name, err)
		}
		groups = append(groups, uint32(gid))
	}
	return groups, nil
}

// Credential returns the user id, group id and supplementary groups for a child process that runs as an account. It
// returns nil if this process runs as the account. It blocks as Lookup does.
func (n *NameService) Credential(ctx context.Context, a *Account) (*syscall.Credential, error) {
	if uint32(os.Geteuid()) == a.UID {
		return nil, nil
	}
	groups, err := n.groupIDs(ctx, a)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: a.UID, Gid: a.GID, Groups: groups}, nil
}
