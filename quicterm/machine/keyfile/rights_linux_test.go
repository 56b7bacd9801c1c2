package keyfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The process that parses keys has all ids of the account before it reads the first byte, also of the
// output of a program that runs as another account.
func TestParsedAsTheAccount(t *testing.T) {
	r, a := newReader(t), another(t)
	blob, line := key(1)
	r.timeout = time.Minute
	dir := programDir(t)
	script := filepath.Join(dir, "program")
	syscall.ForkLock.RLock() // no other test forks while the script can be written
	err := os.WriteFile(script, []byte("#!/bin/sh\nwhile ! test -e "+dir+"/go; do /bin/sleep 0.02; done\necho \"$1\"\n"), 0o755)
	syscall.ForkLock.RUnlock()
	if err = errors.Join(err, os.Chmod(script, 0o755)); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	runs := *a
	runs.UID++
	got := make(chan string, 1)
	go func() {
		sources := &Sources{Program: &Program{Argv: []string{script, strings.TrimSpace(line)}, Account: &runs}}
		got <- verdicts(r.Authorize(t.Context(), a, sources, ask(clientAddr, blob)...))
	}()
	ids := fmt.Sprintf("%d %[1]d %[1]d %[1]d", a.UID)
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if seen := childIDs(t); seen == ids {
			break
		} else if time.Since(start) > 30*time.Second {
			t.Fatalf("the child that reads has the user ids %q, want %q", seen, ids)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := <-got; got != "allowed" {
		t.Error(got)
	}
}

// childIDs returns the user ids of the child of this process that reads keys, or nothing.
func childIDs(t *testing.T) string {
	t.Helper()
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range statuses {
		status, err := os.ReadFile(file)
		command, err2 := os.ReadFile(filepath.Dir(file) + "/cmdline")
		if err != nil || err2 != nil || !strings.Contains(string(command), Command) {
			continue
		}
		_, parent, _ := strings.Cut(string(status), "PPid:")
		_, ids, _ := strings.Cut(string(status), "Uid:")
		if strings.Fields(parent)[0] == fmt.Sprint(os.Getpid()) {
			return strings.Join(strings.Fields(ids)[:4], " ")
		}
	}
	return ""
}
