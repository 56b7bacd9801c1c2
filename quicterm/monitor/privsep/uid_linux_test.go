package privsep

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/quicterm/machine/account"
)

// The network process has the group of its account, and no other with the number of its user id.
func TestNetworkIDs(t *testing.T) {
	for entry, want := range map[string][2]uint32{
		"quicterm:x:995:994::/:/usr/sbin/nologin": {995, 994},
		"quicterm:x:995:0::/:/usr/sbin/nologin":   {firstUID, firstUID},
		"quicterm:x:995:994::/:/bin/sh":           {firstUID, firstUID},
	} {
		dir := t.TempDir()
		if a, err := new(account.NameService).Lookup(t.Context(), networkAccount); err == nil {
			t.Skipf("this machine has the account %s", a.Name)
		}
		script := "#!/bin/sh\ncase $3 in quicterm) echo '" + entry + "';; *) exit 2;; esac\n"
		syscall.ForkLock.RLock() // what another test forks could have the file open for writing
		err := os.WriteFile(filepath.Join(dir, "getent"), []byte(script), 0o700)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		uid, gid, err := networkIDs(t.Context(), &account.NameService{Dirs: []string{dir}})
		if got := [2]uint32{uid, gid}; err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", entry, got, err, want)
		}
	}
}
