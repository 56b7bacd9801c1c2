//go:build unix

package bootstrap

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// stream returns the first bytes of a stream.
func stream(t *testing.T, messages ...wire.Body) (first []byte) {
	t.Helper()
	for _, v := range messages {
		m, err := wire.New(v)
		if err != nil {
			t.Fatal(err)
		}
		first = m.Append(first)
	}
	return first
}

// The command has the first bytes only if every account of the server may see them.
func TestCommandShowsNoSecret(t *testing.T) {
	hello := &wire.Hello{Software: "qt"}
	env := func(names ...string) *wire.Attach {
		a := new(wire.Attach)
		for _, name := range names {
			a.Env = append(a.Env, [2]string{name, "value"})
		}
		return a
	}
	for _, test := range []struct {
		name  string
		first []byte
		shown bool
	}{
		{"attach", stream(t, hello, env("TERM", "LC_CTYPE")), true},
		{"attach with input", stream(t, hello, &wire.Attach{Input: []byte("ls")}), false},
		{"attach to run a command", stream(t, hello, &wire.Attach{Command: "make"}), true},
		{"list", stream(t, hello, &wire.List{}), true},
		{"other variable", stream(t, hello, env("TERM", "API_TOKEN")), false},
		{"other variable of the locale", stream(t, hello, env("LC_SECRET")), false},
		{"token", stream(t, hello, &wire.Token{Token: make([]byte, 32)}, &wire.List{}), false},
		{"keys", stream(t, &wire.Hello{Keys: [][]byte{{1}}}, &wire.List{}), false},
		{"resume", stream(t, new(wire.Resume)), false},
		{"request that is not known to be harmless", stream(t, hello, &wire.Kill{Session: "1"}), false},
		{"long command", stream(t, hello, &wire.Attach{Command: strings.Repeat("x", maxVariable)}), false},
		{"part of a message", stream(t, hello, env("TERM"))[:9], false},
		{"no message", []byte("first"), false},
		{"nothing", nil, false},
	} {
		command := remoteCommand(test.first)
		if shown := strings.Contains(command, base64.StdEncoding.EncodeToString(test.first)) && len(test.first) > 0; shown != test.shown {
			t.Errorf("%s: %q", test.name, command)
		}
		if shown := strings.Contains(command, OpenVariable); shown != test.shown {
			t.Errorf("%s: the command sets the variable: %v", test.name, shown)
		}
	}
}

// Any login shell runs qtd with the first bytes in its environment. A word of csh has at most
// 1024 bytes.
func TestCommandInShells(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	script := "#!/bin/sh\necho \"$@ $" + OpenVariable + "\"\n"
	if err := os.WriteFile(filepath.Join(dir, "qtd"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	fits := stream(t, &wire.Attach{Command: strings.Repeat("x", maxVariable*3/4-100)})
	for len(base64.StdEncoding.EncodeToString(fits)) < maxVariable-3 {
		fits = append(fits, stream(t, &wire.List{})...)
	}
	for _, first := range [][]byte{stream(t, &wire.Hello{}, &wire.List{}), fits, nil} {
		command := remoteCommand(first)
		if len(command) > 1024 || strings.ContainsAny(command, "!\n") || strings.Count(command, "'") != 2 {
			t.Errorf("%d bytes: %s", len(command), command)
		}
		for _, shell := range []string{"sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh", "fish"} {
			if _, err := exec.LookPath(shell); err != nil {
				continue
			}
			out, err := exec.Command(shell, "-c", command).Output()
			value, ok := strings.CutPrefix(strings.TrimSuffix(string(out), "\n"), "grant --stdio ")
			if err != nil || !ok || !bytes.Equal(Early(value), first) {
				t.Errorf("%s: %q, %v", shell, out, err)
			}
		}
	}
	if Early("?") != nil {
		t.Error("a variable that is not base64 has first bytes")
	}
}
