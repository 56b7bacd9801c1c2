//go:build linux || darwin

package e2e

import (
	"regexp"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// The list says which clients a session has, and in which role.
func TestList(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Shell(h.Addr, "-s", "first")
	second := h.Shell(h.Addr, "-s", "second")
	watcher := rig.Open(t, h.QT("watch", "second"))
	second.Expect("watch") // the writer is told of it
	got, err := h.QT("ls").CombinedOutput()
	const want = `(?s)first .*second .*attached .*@127.0.0.1\S* \d+s, .*@127.0.0.1\S* \d+s \(watch\)|` +
		`second .*attached .*@127.0.0.1\S* \d+s, .*@127.0.0.1\S* \d+s \(watch\).*first `
	if err != nil || !regexp.MustCompile(want).Match(got) {
		t.Errorf("the list: %v, %s", err, got)
	}
	watcher.Send("\x03")
}
