//go:build linux || darwin

package bootstrap

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// What a daemon answers in place of a carrier is an error that says what to do.
func TestOpenWithoutCarrier(t *testing.T) {
	base, err := os.MkdirTemp("", "qt") // unix sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	dir, err := rundir.Base(base).Make()
	if err != nil {
		t.Fatal(err)
	}
	l, err := rundir.Listen(filepath.Join(dir, rundir.DaemonSocket))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answers := make(chan wire.Body, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for answer := range answers {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if answer != nil {
				wire.Send(c, answer)
			}
			c.Close()
		}
	}()
	defer func() {
		close(answers)
		<-done
	}()
	start := func() error { return errors.New("none is started") }
	for _, test := range []struct {
		answer wire.Body
		want   string
	}{
		{&wire.Error{Text: "closed"}, "closed"},
		{&wire.Done{}, "message of type"},
		{nil, "gives no grant"},
	} {
		answers <- test.answer
		if _, c, err := Open(base, start); c != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}
