package quicterm_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/quicterm/quicterm/"

// leaves are the packages whose promises hold for whatever they are used in:
// they may import nothing of this module but what is named here, no package that
// reaches a network, a file or another process, and no module but those named.
var leaves = map[string][]string{
	"buffer":           nil,
	"migrate":          nil,
	"migrate/netmon":   {"golang.org/x/sys/unix", "golang.org/x/sys/windows", "net", "os", "syscall"}, // it asks the system
	"quicterm/session": {module + "buffer"},
	"quicterm/vt":      nil,
	"quicterm/wire":    {"github.com/fxamacker/cbor/v2"},
	"configs":          {"github.com/pelletier/go-toml/v2", "os"}, // it reads its files
}

// outside is what a leaf must not reach.
var outside = []string{"net", "os", "os/exec", "syscall", "crypto/tls"}

// only says of some imports who may have them, and why.
var only = []struct {
	imported, why string
	by            []string
}{
	{"github.com/quic-go/quic-go", "one carrier can be replaced by another",
		[]string{"quicterm", "migrate/carrier", "bench", "bench/netem"}},
	{"github.com/creack/pty", "a terminal belongs to the process that outlives all others",
		[]string{"quicterm/holder", "bench", "bench/rig"}},
	{"github.com/spf13/cobra", "the library does not know how it is called",
		[]string{"cmd/qt", "cmd/qtd", "bench"}},
	{module + "bench", "it measures the product, which does not know of it", nil},
	{module + "bench/rig", "it drives the product, which does not know of it", []string{"bench"}},
}

// Imports go in the directions that the design gives them.
func TestArrows(t *testing.T) {
	type listed struct {
		ImportPath string
		Imports    []string
	}
	list := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		seen[name] = true
		allowed, leaf := leaves[name]
		for _, i := range p.Imports {
			foreign := strings.Contains(i, ".") || slices.Contains(outside, i)
			if leaf && foreign && !slices.Contains(allowed, i) {
				t.Errorf("%s imports %s, and is a leaf", name, i)
			}
			for _, rule := range only {
				if i == rule.imported && !slices.Contains(rule.by, name) {
					t.Errorf("%s imports %s: %s", name, i, rule.why)
				}
			}
		}
	}
	for name := range leaves {
		if !seen[name] {
			t.Errorf("there is no package %s", name)
		}
	}
}
