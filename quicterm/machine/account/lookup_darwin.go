package account

import (
	"context"
	"os/user"
	"strconv"
	"strings"
)

// lookup asks the directory service. key is a name or a user id.
func (n *NameService) lookup(ctx context.Context, key string, match func(*Account) bool) (*Account, error) {
	u, err := user.Lookup(key)
	if err != nil {
		if u, err = user.LookupId(key); err != nil {
			return nil, ErrUnknown
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	a := &Account{Name: u.Username, UID: uint32(uid), GID: uint32(gid), Home: u.HomeDir, Shell: "/bin/sh"}
	if out, err := n.ask(ctx, "dscl", ".", "-read", "/Users/"+a.Name, "UserShell"); err == nil {
		if _, shell, ok := strings.Cut(strings.TrimSpace(string(out)), "UserShell: "); ok {
			a.Shell = shell
		}
	}
	if !match(a) {
		return nil, ErrUnknown
	}
	return a, nil
}

// groupName asks the directory service for the name of a group. It returns nothing if there is none.
func (n *NameService) groupName(_ context.Context, id uint32) (string, error) {
	g, err := user.LookupGroupId(strconv.FormatUint(uint64(id), 10))
	if err != nil {
		return "", nil
	}
	return g.Name, nil
}
