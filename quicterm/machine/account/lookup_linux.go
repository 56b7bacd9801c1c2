package account

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
)

// lookup looks an account up in /etc/passwd, then asks the name service, which
// knows the accounts of directory services. key is a name or a user id.
func (n *NameService) lookup(ctx context.Context, key string, match func(*Account) bool) (*Account, error) {
	if b, err := os.ReadFile("/etc/passwd"); err == nil {
		if a := scanPasswd(b, match); a != nil {
			return a, nil
		}
	}
	b, err := n.ask(ctx, "getent", "passwd", "--", key)
	var exit *exec.ExitError
	if errors.As(err, &exit) || errors.Is(err, fs.ErrNotExist) {
		return nil, ErrUnknown // not every system has a getent
	}
	if err != nil {
		return nil, err
	}
	if a := scanPasswd(b, match); a != nil {
		return a, nil
	}
	return nil, ErrUnknown
}

// groupName looks the name of a group up, as lookup does. It returns nothing if there is none.
func (n *NameService) groupName(ctx context.Context, id uint32) (string, error) {
	if b, err := os.ReadFile("/etc/group"); err == nil {
		if name := scanGroups(b, id); name != "" {
			return name, nil
		}
	}
	b, err := n.ask(ctx, "getent", "group", "--", strconv.FormatUint(uint64(id), 10))
	var exit *exec.ExitError
	if errors.As(err, &exit) || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return scanGroups(b, id), err
}
