//go:build linux || darwin

package keyfile

import (
	"fmt"
	"sync"
	"testing"
)

// Clients of one account, for whom sshd's configuration names different files, or who log in by
// several names of one user id, wait for each other. None of them is told that the file system
// does not answer.
func TestSourcesOfOneAccount(t *testing.T) {
	r, a := newReader(t), current(t)
	blob, line := key(1)
	var wg sync.WaitGroup
	for i := range 8 {
		file := put(t, a, fmt.Sprint("keys", i), 0o600, line)
		other := *a
		other.Name += fmt.Sprint(i / 2)
		wg.Go(func() {
			if got := verdicts(r.Authorize(t.Context(), &other, &Sources{Files: []string{file}}, ask(clientAddr, blob)...)); got != "allowed" {
				t.Errorf("source %d: %s", i, got)
			}
		})
	}
	wg.Wait()
}
