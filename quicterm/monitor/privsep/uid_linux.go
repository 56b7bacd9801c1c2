package privsep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/quicterm/quicterm/quicterm/machine/account"
)

const (
	// networkAccount is the account of the network process, if the administrator has made it.
	networkAccount = "quicterm"

	// firstUID and lastUID are user ids that nobody gives to accounts: Linux distributions leave them
	// out, and so does systemd for what it makes at run time. Containers with 65536 ids have them.
	firstUID, lastUID = 61139, 61183
)

// networkIDs returns the user id and the group id of the network process: those of networkAccount, in
// which nobody may log in, or a number that no account has. They are not nobody's, with which other
// programs run: they could send signals to the process, and it to them.
func networkIDs(ctx context.Context, names *account.NameService) (uid, gid uint32, err error) {
	a, err := names.Lookup(ctx, networkAccount)
	if err == nil && a.UID != 0 && a.GID != 0 {
		if shell := filepath.Base(a.Shell); shell == "nologin" || shell == "false" {
			return a.UID, a.GID, nil
		}
	}
	for uid := uint32(firstUID); uid <= lastUID; uid++ {
		if _, err = names.LookupID(ctx, uid); errors.Is(err, account.ErrUnknown) {
			return uid, uid, nil
		}
	}
	return 0, 0, fmt.Errorf("no user id for the network process: make a system account %q: %w", networkAccount, err)
}
