package account

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// counting returns a name service whose getent runs a script after it has written a line
// to a file, and a function that counts these lines.
func counting(t *testing.T, script string) (n *NameService, commands func() int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "commands")
	n = nameService(t, "echo $3 >> "+file+"\n"+script)
	return n, func() int {
		b, _ := os.ReadFile(file) // there is none before the first command
		return strings.Count(string(b), "\n")
	}
}

// Clients that ask for the same account share one command, and its answer is kept, that
// there is no such account as well.
func TestNameServiceAnswersAreKept(t *testing.T) {
	n, commands := counting(t, `case $3 in jane) echo "jane:x:70001:70000::/home/jane:/bin/sh";; *) exit 2;; esac`)
	for i, name := range []string{"jane", "no-such-account-1", "no-such-account-2"} {
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				a, err := n.Lookup(t.Context(), name)
				if name == "jane" && (err != nil || a.UID != 70001) || name != "jane" && !errors.Is(err, ErrUnknown) {
					t.Errorf("%s: got %v, %v", name, a, err)
				}
			})
		}
		wg.Wait()
		if got := commands(); got != i+1 {
			t.Errorf("%d commands for %d names", got, i+1)
		}
	}
}

// An answer is valid for some time, and until the local files change. That there is none is no reason to forget others.
func TestAnswerTime(t *testing.T) {
	n := new(NameService)
	for key, test := range map[string]struct {
		answer
		valid, known bool
	}{
		"valid":       {answer{files: localFiles()}, true, true},
		"old":         {answer{files: localFiles(), until: time.Now()}, false, true},
		"other files": {answer{files: "1"}, false, true},
		"missing":     {answer{files: localFiles(), err: fs.ErrNotExist}, true, false},
		"failed":      {answer{files: localFiles(), err: context.Canceled}, false, false},
	} {
		kept := test.answer
		n.keep(key, &kept)
		if !test.until.IsZero() {
			kept.until = test.until
		}
		if a, known := n.kept(key); (a != nil) != test.valid || known != test.known {
			t.Errorf("%s: %v, known %v; want %+v", key, a, known, test)
		}
	}
	for i := range 10000 {
		n.keep(fmt.Sprint("no such ", i), &answer{files: localFiles(), err: fs.ErrNotExist})
	}
	if a, known := n.kept("valid"); a == nil || !known {
		t.Error("an account that was found is forgotten in a flood of names")
	}
}

// A failure is not kept: a name service that did not answer is asked again.
func TestNameServiceFailureIsNotKept(t *testing.T) {
	n, commands := counting(t, "exec /bin/sleep 60")
	for want := 1; want <= 2; want++ {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for commands() < want && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		if _, err := n.Lookup(ctx, "jane"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	}
}

// A flood of unknown names that the name service does not answer runs maxCommands commands
// at a time, and delays neither local accounts nor those that were found before.
func TestNameServiceFlood(t *testing.T) {
	n, commands := counting(t, `case $3 in jane) echo "jane:x:70001:70000::/home/jane:/bin/sh";; *) exec /bin/sleep 60;; esac`)
	if _, err := n.Lookup(t.Context(), "jane"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	start := time.Now()
	var wg sync.WaitGroup
	for i := range 100 {
		source := WithSource(ctx, fmt.Sprint(i%10))
		wg.Go(func() { n.Lookup(source, fmt.Sprint("unknown", i)) })
	}
	for commands() < 1+maxCommands {
		time.Sleep(time.Millisecond)
	}
	for i := range 5 {
		if _, err := n.Lookup(t.Context(), "root"); err != nil {
			t.Error(err)
		}
		n.mu.Lock()
		jane, _ := n.found.Get("getent passwd -- jane")
		jane.until = time.Time{} // it is asked for again
		n.mu.Unlock()
		if _, err := n.Lookup(t.Context(), "jane"); err != nil {
			t.Error(err)
		}
		got := commands()
		rounds := 1 + int(time.Since(start)/lookupTimeout) // of commands that were given up
		if limit := 1 + maxCommands*rounds + i + 1; got > limit {
			t.Errorf("%d commands, want at most %d", got, limit)
		}
	}
	cancel()
	wg.Wait()
}

// One source has not all commands, however long they take.
func TestNameServiceSlowSource(t *testing.T) {
	n, commands := counting(t, `case $3 in jane) echo "jane:x:70001:70000::/home/jane:/bin/sh";; *) exec /bin/sleep 60;; esac`)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { n.Lookup(WithSource(ctx, "slow"), fmt.Sprint("unknown", i)) })
	}
	for commands() < sourceCommands {
		time.Sleep(time.Millisecond)
	}
	start := time.Now()
	if _, err := n.Lookup(WithSource(t.Context(), "honest"), "jane"); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > lookupTimeout/2 {
		t.Errorf("found after %v", d)
	}
	cancel()
	wg.Wait()
}

// Who waits for the answer that another client waits for keeps nobody from asking for something else.
func TestNameServiceSameName(t *testing.T) {
	n, commands := counting(t, `case $3 in jane*) exit 2;; *) exec /bin/sleep 60;; esac`)
	ctx, cancel := context.WithCancel(WithSource(t.Context(), "office"))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { n.Lookup(ctx, "unknown") })
	}
	for commands() < 1 {
		time.Sleep(time.Millisecond)
	}
	start := time.Now()
	for i := range 10 {
		if _, err := n.Lookup(ctx, fmt.Sprint("jane", i)); !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
	}
	if d := time.Since(start); d > lookupTimeout/2 {
		t.Errorf("answered after %v", d)
	}
	if n := commands(); n != 11 {
		t.Errorf("%d commands for 11 names", n)
	}
	cancel()
	wg.Wait()
}

// The commands are those of the system, whatever PATH says.
func TestNameServiceIgnoresPath(t *testing.T) {
	dir := t.TempDir()
	for _, command := range []string{"getent", "id"} {
		if err := os.WriteFile(filepath.Join(dir, command), []byte("#!/bin/sh\n: > "+dir+"/ran\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	n := new(NameService)
	n.Lookup(t.Context(), "no-such-account")
	n.groupIDs(t.Context(), &Account{Name: "nobody", UID: 1<<32 - 2})
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a command from PATH ran")
	}
}

// So many commands start a second, for names that were not found.
func TestLookupsASecond(t *testing.T) {
	n, commands := counting(t, "exit 2")
	const more = 5
	start := time.Now()
	for i := range commandBurst + more {
		n.Lookup(WithSource(t.Context(), fmt.Sprint(i)), fmt.Sprint("unknown", i))
	}
	if d, want := time.Since(start), more*time.Second/commandRate; d < want-want/10 || commands() != commandBurst+more {
		t.Errorf("%d commands take %v, want %v", commands(), d, want)
	}
}
