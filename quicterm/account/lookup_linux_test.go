package account

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// nameService puts a getent in front of the system's, in place of a directory
// service that no test machine has.
func nameService(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "getent"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestNameService(t *testing.T) {
	const jane = "jane@corp:x:70001:70000:Jane:/home/jane:/bin/zsh"
	nameService(t, `case "$*" in "passwd -- jane@corp"|"passwd -- 70001") echo "`+jane+`";; *) exit 2;; esac`)
	want := Account{"jane@corp", 70001, 70000, "/home/jane", "/bin/zsh"}
	if a, err := Lookup("jane@corp"); err != nil || *a != want {
		t.Errorf("by name: got %+v, %v; want %+v", a, err, want)
	}
	if a, err := LookupID(70001); err != nil || *a != want {
		t.Errorf("by user id: got %+v, %v; want %+v", a, err, want)
	}
	if a, err := Lookup("joe@corp"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown: got %+v, %v; want %v", a, err, ErrUnknown)
	}
	if a, err := Lookup("70001"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a number as a name: got %+v, %v; want %v", a, err, ErrUnknown)
	}
}

func TestNameServiceFails(t *testing.T) {
	for name, script := range map[string]string{
		"another's line": `echo "root:x:0:0::/root:/bin/sh"`,
		"no line":        `echo what`,
		"nothing":        ``,
		"failure":        `echo "jane@corp:x:70001:70000::/:"; exit 1`,
	} {
		nameService(t, script)
		if a, err := Lookup("jane@corp"); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: got %+v, %v; want %v", name, a, err, ErrUnknown)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if a, err := Lookup("jane@corp"); !errors.Is(err, ErrUnknown) {
		t.Errorf("no getent: got %+v, %v; want %v", a, err, ErrUnknown)
	}
}
