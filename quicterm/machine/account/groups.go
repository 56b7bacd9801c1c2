//go:build linux || darwin

package account

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// GroupNames returns the names of all groups that an account is in, its own one included. It
// leaves out a group that has no name. It blocks as Lookup does.
func (n *NameService) GroupNames(ctx context.Context, a *Account) ([]string, error) {
	ids, err := n.groupIDs(ctx, a)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, id := range ids {
		name, err := n.groupName(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("name of group %d: %w", id, err)
		}
		if name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

func scanGroups(b []byte, id uint32) string {
	for line := range strings.Lines(string(b)) {
		f := strings.Split(line, ":")
		if len(f) != 4 || f[0] == "" || f[0][0] == '#' {
			continue
		}
		if found, err := strconv.ParseUint(f[2], 10, 32); err == nil && uint32(found) == id {
			return f[0]
		}
	}
	return ""
}
