package main

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/client/files"
)

func TestSplitRemote(t *testing.T) {
	for arg, want := range map[string][2]string{
		"server:": {"server", ""}, "server:a/b": {"server", "a/b"}, "anna@server:~/a:b": {"anna@server", "~/a:b"},
		"server:@work:a": {"server", "@work:a"}, "[::1]:a": {"::1", "a"}, "anna@[fe80::1%eth0]:/a": {"anna@fe80::1%eth0", "/a"},
		"a": {}, "./a:b": {}, "/a:b": {}, "a/b:c": {}, ":a": {}, "": {}, "[a]": {}, "[a/b]:c": {},
	} {
		host, path, ok := splitRemote(arg)
		if ok != (want[0] != "") || host != want[0] || path != want[1] {
			t.Errorf("splitRemote(%q) = %q, %q, %t; want %q", arg, host, path, ok, want)
		}
	}
}

// A bar says how far a copy is, as soon as it is known how much there is.
func TestBar(t *testing.T) {
	var p files.Progress
	b := &bar{p: &p}
	want := func(after time.Duration, want string) {
		t.Helper()
		if got := b.text(after); got != want {
			t.Errorf("the bar is %q, want %q", got, want)
		}
	}
	want(time.Second, "0 B, 0 B/s")
	p.TotalFiles.Store(1)
	p.TotalBytes.Store(4_000_000)
	p.Bytes.Store(1_500_000)
	p.Resumed.Store(500_000)
	want(2*time.Second, "1.5 MB, 500.0 kB/s")
	p.Listed.Store(true)
	want(2*time.Second, "37 % of 4.0 MB, 500.0 kB/s, 5s left")
	p.TotalFiles.Store(3)
	p.Files.Store(2)
	p.Bytes.Store(5_000_000) // a file has grown
	want(9*time.Second, "100 % of 4.0 MB, 500.0 kB/s, 0s left, 2 of 3 files")
}
