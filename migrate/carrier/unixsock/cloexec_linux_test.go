package unixsock_test

import (
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
)

// A program that is started while a pair is made inherits neither end: it could speak to
// a session's holder.
func TestDatagramPairIsNotInherited(t *testing.T) {
	sockets := func() []string {
		out, err := exec.Command("ls", "-ln", "/proc/self/fd").Output()
		if err != nil {
			t.Error(err)
		}
		return regexp.MustCompile(`socket:\[\d+\]`).FindAllString(string(out), -1)
	}
	before := sockets() // of whatever runs the tests
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			ours, theirs, err := unixsock.DatagramPair()
			if err != nil {
				t.Error(err)
				return
			}
			ours.Close()
			theirs.Close()
		}
	})
	for range 50 {
		for _, s := range sockets() {
			if !slices.Contains(before, s) {
				t.Errorf("a child has %s, before there were %v", s, before)
			}
		}
	}
	close(stop)
	wg.Wait()
}
