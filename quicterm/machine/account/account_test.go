//go:build linux || darwin

package account

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestCurrent(t *testing.T) {
	a, err := new(NameService).Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if int(a.UID) != os.Getuid() || a.Name == "" || a.Home == "" || a.Shell == "" {
		t.Errorf("got %+v, want all fields of this process's account", *a)
	}
	byName, err := new(NameService).Lookup(t.Context(), a.Name)
	if err != nil || *byName != *a {
		t.Errorf("by name: got %+v, %v; want %+v", byName, err, *a)
	}
	if c, err := new(NameService).Credential(t.Context(), a); err != nil || c != nil {
		t.Errorf("credential for the own account: %v, %v; want none", c, err)
	}
}

func TestUnknown(t *testing.T) {
	for _, name := range []string{
		"no-such-account", "", "-x", "--help", "a b", "a\nroot", "root:", "ä", "0", "root\x00",
		"../root", "$(id)", "$", "@corp", `\jane`, "host$$", strings.Repeat("a", 65), strings.Repeat("a", 1<<20),
	} {
		if a, err := new(NameService).Lookup(t.Context(), name); !errors.Is(err, ErrUnknown) || a != nil {
			t.Errorf("%.70q: got %v, %v; want %v", name, a, err, ErrUnknown)
		}
	}
	if a, err := new(NameService).LookupID(t.Context(), math.MaxUint32-1); !errors.Is(err, ErrUnknown) || a != nil {
		t.Errorf("user id: got %v, %v; want %v", a, err, ErrUnknown)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"root", "_apt", "jane.doe", "j-d", "host$", `CORP\jane`, "jane@corp.example", "Jane", "1000x",
		strings.Repeat("a", 64) + "$",
	} {
		if !askable(name) {
			t.Errorf("%q cannot be looked up", name)
		}
	}
}

func TestParsePasswd(t *testing.T) {
	for _, test := range []struct {
		line string
		want Account
	}{
		{"me:x:1000:100:Me,,,:/home/me:/bin/bash", Account{"me", 1000, 100, "/home/me", "/bin/bash"}},
		{"me:x:1000:100::/home/me:", Account{"me", 1000, 100, "/home/me", "/bin/sh"}},
		{"me::4294967295:0:::x", Account{"me", math.MaxUint32, 0, "", "x"}},
	} {
		if a, err := parsePasswd(test.line); err != nil || *a != test.want {
			t.Errorf("%q: got %+v, %v; want %+v", test.line, a, err, test.want)
		}
	}
	for _, line := range []string{
		"", "#", "+::::::", "-me::::::", "+", ":x:0:0::/:", "me:x:1:2::/home", "me:x:1:2::/home:/bin/sh:", "me:x::2::/:",
		"me:x:1:::/:", "me:x:-1:2::/:", "me:x:4294967296:2::/:", "me:x:1:4294967296::/:", "me:x:0x1:2::/:", "me:x: 1:2::/:",
	} {
		if a, err := parsePasswd(line); err == nil {
			t.Errorf("%q: got %+v, want an error", line, *a)
		}
	}
}

// The first line that matches counts. Lines that cannot be parsed are skipped.
func TestScanPasswd(t *testing.T) {
	content := "# root:x:1:1::/:\n\nroot\nroot:x:a:0::/:\nroot:x:0:0::/root:/bin/sh\nroot:x:7:7::/:\nlast:x:8:8::/:/bin/sh"
	for name, want := range map[string]string{"root": "0", "last": "8", "none": "none"} {
		got := "none"
		if a := scanPasswd([]byte(content), func(a *Account) bool { return a.Name == name }); a != nil {
			got = fmt.Sprint(a.UID)
		}
		if got != want {
			t.Errorf("%s: got user id %s, want %s", name, got, want)
		}
	}
}

// other returns another account than that of this process. Only root can act as it.
func other(t *testing.T) *Account {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another account")
	}
	a, err := new(NameService).Lookup(t.Context(), "nobody")
	if err != nil {
		t.Skipf("there is no other account, nobody: %v", err)
	}
	return a
}

func TestCredentialOfAnother(t *testing.T) {
	a := other(t)
	c, err := new(NameService).Credential(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if c.Uid != a.UID || c.Gid != a.GID || !slices.Contains(c.Groups, a.GID) || slices.Contains(c.Groups, 0) || c.NoSetGroups {
		t.Errorf("got %+v, want the ids and groups of %+v only", *c, *a)
	}
}

func TestGroupsOfUnknownAccount(t *testing.T) {
	a := &Account{Name: "no-such-account", UID: math.MaxUint32 - 1}
	if groups, err := new(NameService).groupIDs(t.Context(), a); err == nil || !strings.Contains(err.Error(), a.Name) {
		t.Errorf("got %v, %v; want an error that names the account", groups, err)
	}
}
