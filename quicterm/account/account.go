//go:build linux || darwin

// Package account knows the accounts of this machine: who they are, and how to
// act as one of them.
package account

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// An Account is a user of this machine.
type Account struct {
	Name     string
	UID, GID uint32
	Home     string
	Shell    string
}

// ErrUnknown means that there is no such account.
var ErrUnknown = errors.New("no such account")

// lookupTime bounds how long a name service may take.
const lookupTime = 10 * time.Second

// names are what may be asked of a name service: what useradd allows, and the
// domain forms of directory services.
var names = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.@\\-]{0,63}\$?$`)

// Lookup returns the account of the given name.
func Lookup(name string) (*Account, error) {
	if !names.MatchString(name) {
		return nil, ErrUnknown
	}
	return lookup(name, func(a *Account) bool { return a.Name == name })
}

// LookupID returns the account of the given user id.
func LookupID(uid uint32) (*Account, error) {
	return lookup(strconv.FormatUint(uint64(uid), 10), func(a *Account) bool { return a.UID == uid })
}

// Current returns the account that this process runs as.
func Current() (*Account, error) { return LookupID(uint32(os.Getuid())) }

// parsePasswd parses a line of passwd(5).
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

// scanPasswd returns the first account in passwd lines that matches.
func scanPasswd(b []byte, match func(*Account) bool) *Account {
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		if a, err := parsePasswd(lines.Text()); err == nil && match(a) {
			return a
		}
	}
	return nil
}

// Groups returns the ids of all groups that the account is in.
func (a *Account) Groups() ([]uint32, error) {
	if uint32(os.Geteuid()) == a.UID {
		return currentGroups()
	}
	out, err := output("id", "-G", "--", a.Name)
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

func currentGroups() ([]uint32, error) {
	ids, err := os.Getgroups()
	if err != nil {
		return nil, err
	}
	groups := make([]uint32, len(ids))
	for i, id := range ids {
		groups[i] = uint32(id)
	}
	return groups, nil
}

// Credential returns what a child process needs to run as the account, with
// its user, group and supplementary groups; or nil if this process does already.
func (a *Account) Credential() (*syscall.Credential, error) {
	if uint32(os.Geteuid()) == a.UID {
		return nil, nil
	}
	groups, err := a.Groups()
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: a.UID, Gid: a.GID, Groups: groups}, nil
}

// output runs a command of the system with nothing of our environment but PATH.
func output(name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return cmd.Output()
}
