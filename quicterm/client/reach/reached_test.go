package reach

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// How servers were reached is kept for a day, for some servers, and whatever is in the file.
func TestReached(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	file := filepath.Join(dir, "quicterm", "reached.json")
	if _, ok := recall("a@b"); ok {
		t.Error("something is known without a file")
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(remember(reached{Server: "a@b", Port: 60001, NoUDP: true}))
	if r, ok := recall("a@b"); !ok || r.Port != 60001 || !r.NoUDP {
		t.Errorf("%+v, %t", r, ok)
	}
	if _, ok := recall("c@b"); ok {
		t.Error("another account's server is known")
	}
	check(remember(reached{Server: "a@b", Port: 60002}))
	if r, ok := recall("a@b"); !ok || r.Port != 60002 || r.NoUDP {
		t.Errorf("%+v, %t after another port", r, ok)
	}
	check(remember(reached{Server: "a@b", Port: 0}))
	if _, ok := recall("a@b"); ok {
		t.Error("it is known still")
	}

	now := time.Now()
	for _, r := range []reached{
		{Server: "old", Network: currentNetwork(), Port: 1, At: now.Add(-reachedTime - time.Minute)},
		{Server: "early", Network: currentNetwork(), Port: 1, At: now.Add(time.Hour)},
		{Server: "away", Network: "another network", Port: 1, At: now},
		{Server: "none", Network: currentNetwork(), Port: 0, At: now},
	} {
		content, err := json.Marshal([]reached{r})
		check(errors.Join(err, os.WriteFile(file, content, 0o600)))
		if _, ok := recall(r.Server); ok {
			t.Errorf("%s is known", r.Server)
		}
	}
	for _, content := range []string{"", "{}", "null", `[{"port":-1}]`, "[", strings.Repeat("[", 1<<20), `[{"server":"a@b"}]`} {
		check(os.WriteFile(file, []byte(content), 0o600))
		if _, ok := recall("a@b"); ok {
			t.Errorf("known from %.20q", content)
		}
		check(remember(reached{Server: "a@b", Port: 1}))
		if _, ok := recall("a@b"); !ok {
			t.Errorf("not known after %.20q", content)
		}
	}
	for i := range maxReached + 1 {
		check(remember(reached{Server: fmt.Sprint(i), Port: 1}))
	}
	if n := len(loadReached()); n != maxReached {
		t.Errorf("%d servers are kept, want %d", n, maxReached)
	}
	info, err := os.Stat(file)
	check(err)
	if info.Mode().Perm()&0o077 != 0 || info.Size() > maxState {
		t.Errorf("%v of %d bytes", info.Mode(), info.Size())
	}

	// Clients that write at once leave a whole file.
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { remember(reached{Server: fmt.Sprint("new", i), Port: 1}) })
	}
	wg.Wait()
	if n := len(loadReached()); n != maxReached {
		t.Errorf("%d servers are left, want %d", n, maxReached)
	}
	left, err := filepath.Glob(filepath.Join(dir, "quicterm", ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
