//go:build linux || darwin

package e2e

import (
	"regexp"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// Who watches the list sees clients and sessions come and go, across a restart of the daemon.
func TestListWatch(t *testing.T) {
	h := newHost(t)
	h.Start()
	list := h.Via(h.Addr, "ls", []string{"--watch", "--json"})
	events := new(rig.Output)
	list.Stdout, list.Stderr = events, events
	seen := 0
	await := func(re string) {
		t.Helper()
		wanted := regexp.MustCompile(re)
		events.Await(t, seen, wanted)
		seen += wanted.FindStringIndex(events.String()[seen:])[1]
	}
	first := h.Shell(h.Addr, "-s", "first")
	if err := list.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { list.Process.Kill() })
	await(`{"time":"[^"]+Z","event":"exists","session":{"id":"[0-9a-f]{32}","name":"first","state":"attached"`)
	await(`"event":"attached","client":"[^"@]+@127.0.0.1[^"]*","role":"writer","session":{.*"name":"first"`)
	second := h.Shell(h.Addr, "-s", "second")
	await(`"event":"started","session":{.*"name":"second"`)
	watcher := rig.Open(t, h.QT("watch", "second"))
	await(`"event":"attached","client":"[^"]+","role":"watch","session":{.*"name":"second".*"members":\[{.*"role":"writer".*"role":"watch"`)
	if got, err := h.QT("ls").CombinedOutput(); err != nil || !regexp.MustCompile(`second .*attached .*@127.0.0.1\S* \d+s, .*@127.0.0.1\S* \d+s \(watch\)`).Match(got) {
		t.Errorf("the list: %v, %s", err, got)
	}
	watcher.Send("\x03")
	await(`"event":"detached","client":"[^"]+","role":"watch","session":{.*"name":"second"`)
	h.Stop(syscall.SIGTERM)
	await(`"event":"lost"}`)
	h.Start()
	await(`"event":"back"}`)
	second.Send("exit\r")
	second.Exit()
	await(`"event":"ended","session":{.*"name":"second"`)
	if err := list.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := list.Wait(); err != nil {
		t.Errorf("the end by Ctrl-C: %v", err)
	}
	first.Run("echo st''ill here", "still here")
}
