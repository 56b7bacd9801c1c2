package account

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

// An answer is valid for some time, and until the local files change.
func TestAnswerTime(t *testing.T) {
	now := time.Now()
	a := &answer{done: make(chan struct{}), files: "1", until: now.Add(time.Second)}
	if !a.fresh(now.Add(time.Hour), "2") {
		t.Error("an answer that is to come is not waited for")
	}
	close(a.done)
	for _, test := range []struct {
		now   time.Time
		files string
		want  bool
	}{{now, "1", true}, {now.Add(time.Second), "1", false}, {now, "2", false}} {
		if got := a.fresh(test.now, test.files); got != test.want {
			t.Errorf("after %v, with the files %s: %v, want %v", test.now.Sub(now), test.files, got, test.want)
		}
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
		n.answers["getent passwd -- jane"].until = time.Time{} // it is asked for again
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

// A panic while a command is asked for is an error for those that wait for it.
func TestNameServicePanics(t *testing.T) {
	n := nameService(t, "exit 2")
	var none context.Context
	n.initLocked()
	turn := n.turns.Enter("")
	if _, err := n.run(none, turn, "getent", nil); err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("%v, want the panic", err)
	}
	for range sourceCommands {
		<-n.turns.Enter("").Ready() // its turn has ended
	}
}

// The answers that are kept are bounded.
func TestNameServiceForgets(t *testing.T) {
	n := nameService(t, "exit 2")
	n.Lookup(t.Context(), "first")
	done := make(chan struct{})
	close(done)
	n.mu.Lock()
	for i := len(n.answers); i < maxAnswers; i++ {
		a := &answer{done: done, until: time.Now().Add(time.Hour), files: localFiles()}
		if i%4 == 0 {
			a.err = ErrUnknown
		}
		n.answers[fmt.Sprint(i)] = a
	}
	n.mu.Unlock()
	n.Lookup(t.Context(), "last")
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.answers) > maxAnswers/2+1 {
		t.Errorf("%d answers are kept", len(n.answers))
	}
	for key, a := range n.answers {
		if a.err != nil && !strings.HasSuffix(key, "last") {
			t.Errorf("%s is kept, which is unknown, and others are not", key)
		}
	}
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

// So many commands start a second.
func TestLookupsASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(NameService)
		n.initLocked()
		start := time.Now()
		const commands = 2048
		for i := range commands {
			turn := n.turns.Enter(fmt.Sprint(i))
			if err := n.await(t.Context(), turn); err != nil {
				t.Fatal(err)
			}
			n.turns.Leave(turn)
		}
		want := time.Second * (commands - commandBurst) / commandRate
		if d := time.Since(start); d < want || d > want+want/10+time.Second {
			t.Errorf("%d commands take %v, want %v", commands, d, want)
		}
	})
}
