//go:build linux || darwin

package account

import (
	"slices"
	"strings"
	"testing"
)

func TestGroupNames(t *testing.T) {
	n := new(NameService)
	a, err := n.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own, err := n.groupName(t.Context(), a.GID)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := n.GroupNames(t.Context(), a); err != nil || own != "" && !slices.Contains(names, own) {
		t.Errorf("got %q, %v; want %q among them", names, err, own)
	}
	long := "many:x:7:" + strings.Repeat("member,", 20_000) + "\n"
	lines := []byte("# x:x:8:\n\n:x:8:\nbad:x:-8:\n" + long + "domain users:x:8:\nother:x:8:\n")
	for id, want := range map[uint32]string{7: "many", 8: "domain users", 9: ""} {
		if got := scanGroups(lines, id); got != want {
			t.Errorf("%d: %q, want %q", id, got, want)
		}
	}
}
