package account

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// nameService returns a name service with another getent, in place of a directory service
// that no test machine has.
func nameService(t *testing.T, script string) *NameService {
	t.Helper()
	dir := t.TempDir()
	syscall.ForkLock.RLock() // a command of another test, which is given up, does not have the script open for writing
	err := os.WriteFile(filepath.Join(dir, "getent"), []byte("#!/bin/sh\n"+script), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return &NameService{Dirs: []string{dir}}
}

func TestNameService(t *testing.T) {
	const jane = "jane@corp:x:70001:70000:Jane:/home/jane:/bin/zsh"
	n := nameService(t, `case "$*" in "passwd -- jane@corp"|"passwd -- 70001") echo "`+jane+`";; *) exit 2;; esac`)
	want := Account{"jane@corp", 70001, 70000, "/home/jane", "/bin/zsh"}
	if a, err := n.Lookup(t.Context(), "jane@corp"); err != nil || *a != want {
		t.Errorf("by name: got %+v, %v; want %+v", a, err, want)
	}
	if a, err := n.LookupID(t.Context(), 70001); err != nil || *a != want {
		t.Errorf("by user id: got %+v, %v; want %+v", a, err, want)
	}
	if a, err := n.Lookup(t.Context(), "joe@corp"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown: got %+v, %v; want %v", a, err, ErrUnknown)
	}
	if a, err := n.Lookup(t.Context(), "70001"); !errors.Is(err, ErrUnknown) {
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
		n := nameService(t, script)
		if a, err := n.Lookup(t.Context(), "jane@corp"); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: got %+v, %v; want %v", name, a, err, ErrUnknown)
		}
	}
	n := &NameService{Dirs: []string{t.TempDir()}}
	if a, err := n.Lookup(t.Context(), "jane@corp"); !errors.Is(err, ErrUnknown) {
		t.Errorf("no getent: got %+v, %v; want %v", a, err, ErrUnknown)
	}
}

// A name service that does not answer holds a lookup up no longer than its context
// lasts.
func TestNameServiceHangs(t *testing.T) {
	n := nameService(t, "/bin/sleep 60") // a child, which keeps the output open
	for name, lookup := range map[string]func(context.Context) error{
		"account": func(ctx context.Context) error { _, err := n.Lookup(ctx, "jane@corp"); return err },
		"user id": func(ctx context.Context) error { _, err := n.LookupID(ctx, 70001); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		started := time.Now()
		time.AfterFunc(100*time.Millisecond, cancel)
		if err := lookup(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", name, err, context.Canceled)
		}
		if took := time.Since(started); took > 20*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// A group of a directory may have a hundred thousand members.
func TestLargeGroup(t *testing.T) {
	n := nameService(t, `echo "many:x:70000:$(head -c 2000000 /dev/zero | tr '\0' m)"`)
	if name, err := n.groupName(t.Context(), 70000); name != "many" || err != nil {
		t.Errorf("got %q, %v", name, err)
	}
}
