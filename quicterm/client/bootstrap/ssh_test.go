//go:build unix

package bootstrap

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// fakeSSH puts a script in the place of the ssh program. It returns a way that uses it, and what
// that shows.
func fakeSSH(t *testing.T, script string) (*SSH, func() []string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DIR", dir)
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	line, err := Line(&wire.Grant{Address: "127.0.0.1:60001", HostKey: key.Marshal(), Protocol: wire.ALPN})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "grant"), []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lines []string
	s := &SSH{
		Host: "host", Args: []string{"--", "host"}, Log: slog.New(slog.DiscardHandler),
		Say: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
			os.WriteFile(filepath.Join(dir, "shown"), nil, 0o600)
		},
	}
	t.Cleanup(s.Close)
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

// The first bytes go at once, all others behind the grant; what the login prints is no part of the
// stream.
func TestSSHStream(t *testing.T) {
	s, shown := fakeSSH(t, `
echo "Warning: new" >&2
echo "Authenticated to host ([::1]:22) using \"publickey\"." >&2
read -r line
echo "$line" > $DIR/first
echo motd
while [ ! -e $DIR/shown ]; do sleep 0.01; done
cat $DIR/grant
echo "noise of a shell" >&2
exec cat
`)
	c, err := s.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	long := strings.Repeat("0123456789abcdef", 1<<16)
	if _, err := c.Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"second", long} {
		go func() { c.Write([]byte(part)) }()
		b := make([]byte, len(part))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != part {
			t.Fatalf("%d bytes %.20q, %v; want %.20q", len(b), b, err, part)
		}
	}
	if first, err := os.ReadFile(os.Getenv("DIR") + "/first"); err != nil || string(first) != string(OpenLine([]byte("first"))) {
		t.Errorf("the first line is %q, %v", first, err)
	}
	if s.Port() != 60001 || s.CheckHost(s.Key()) != nil || s.CheckHost(otherKey(t)) == nil {
		t.Errorf("port %d, key %v; want those of the grant", s.Port(), s.Key())
	}
	if got := shown(); !slices.Equal(got, []string{"Warning: new"}) {
		t.Errorf("shown: %q", got)
	}
}

func otherKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// fails dials, and returns the error of the login.
func fails(t *testing.T, s *SSH, ask bool) error {
	t.Helper()
	c, err := s.Dial(t.Context(), ask)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("first")); err != nil && !errors.As(err, new(*StartError)) && !errors.Is(err, os.ErrClosed) {
		t.Errorf("the first write: %v", err)
	}
	_, err = c.Read(make([]byte, 1))
	if !errors.As(err, new(*StartError)) {
		t.Fatalf("read: %v, want an error of the login", err)
	}
	if _, err := c.Write([]byte("second")); !errors.As(err, new(*StartError)) {
		t.Errorf("the second write: %v", err)
	}
	return err
}

// After the login, a program that says nothing and does not end is given up, even if it cannot be
// told to end.
func TestSSHHangs(t *testing.T) {
	s, _ := fakeSSH(t, `
trap '' TERM
echo "Authenticated to host ([::1]:22)." >&2
exec sleep 100
`)
	s.wait = 50 * time.Millisecond
	start := time.Now()
	if err := fails(t, s, true); !strings.Contains(err.Error(), "neither answers nor ends") {
		t.Error(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A login that neither says nor asks anything is given up, and one to a jump host is no login to
// the host: the user may have to answer another question.
func TestSSHThroughProxy(t *testing.T) {
	s, shown := fakeSSH(t, `
echo "$@" >> $DIR/args
[ -e $DIR/silent ] && exec sleep 100
echo "Authenticated to jump ([::1]:22) using \"publickey\"." >&2
echo "Authenticated to host ([::1]:22) using \"publickey\"." >&2
echo "Authenticated to jump (via proxy) using \"publickey\"." >&2
echo "Warning: new" >&2
while [ ! -e $DIR/shown ]; do sleep 0.01; done
echo "Authenticated to HOST (via proxy) using \"publickey\"." >&2
cat $DIR/grant
exec cat
`)
	s.Name, s.Pipe = "host", true // what is said is shown, since nobody is logged in to that yet
	c, err := s.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { c.Write([]byte("first")); c.Write([]byte("second")) }()
	if n, err := c.Read(make([]byte, 100)); err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if got := shown(); !slices.Equal(got, []string{"Warning: new"}) {
		t.Errorf("shown: %q", got)
	}
	os.WriteFile(os.Getenv("DIR")+"/silent", nil, 0o600)
	s.silence = 100 * time.Millisecond
	if err := fails(t, s, true); !strings.Contains(err.Error(), "it takes too long") {
		t.Error(err)
	}
	if args, err := os.ReadFile(os.Getenv("DIR") + "/args"); err != nil || strings.Contains(string(args), connectTimeout) {
		t.Errorf("the user's answers count as connecting: %s, %v", args, err)
	}
}

// Behind the grant, a daemon that does not answer is given up. One that has answered may be silent.
func TestSSHSilentDaemon(t *testing.T) {
	s, _ := fakeSSH(t, `cat $DIR/grant; read -r line; [ -e $DIR/silent ] || { echo answer; exec cat; }; exec sleep 100`)
	dial := func() carrier.Carrier {
		t.Helper()
		c, err := s.Dial(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.Write([]byte("first")) // if it fails, a read does
		return c
	}
	c := dial()
	b := make([]byte, 100)
	if n, err := c.Read(b); err != nil || string(b[:n]) != "answer\n" {
		t.Fatalf("%q, %v", b[:n], err)
	}
	s.mu.Lock()
	for p := range s.logins {
		if p.answer.Stop() {
			t.Error("it would be given up though it has answered")
		}
	}
	s.mu.Unlock()
	s.wait = 50 * time.Millisecond
	os.WriteFile(os.Getenv("DIR")+"/silent", nil, 0o600)
	if n, err := dial().Read(b); !errors.Is(err, errSilent) {
		t.Errorf("%q, %v; want that it does not answer", b[:n], err)
	}
}

// A login whose user is not to be asked says what it has needed, until one succeeds.
func TestSSHNeedsUser(t *testing.T) {
	s, shown := fakeSSH(t, `
echo "$@" >> $DIR/args
[ -e $DIR/open ] && { cat $DIR/grant; exec cat; }
printf 'a@host: Permission denied (publickey,password).\033[2J\r\n' >&2
exit 255
`)
	for range 2 {
		var login *LoginError
		if err := fails(t, s, false); !errors.As(err, &login) || !login.NeedsUser() || login.Unreachable() {
			t.Errorf("%v; want one that the user can help with", err)
		}
	}
	if want := "a@host: Permission denied (publickey,password).?[2J"; s.Needs() != want {
		t.Errorf("needs %q, want %q", s.Needs(), want)
	}
	if got := shown(); len(got) > 0 {
		t.Errorf("shown: %q", got)
	}
	args, err := os.ReadFile(os.Getenv("DIR") + "/args")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(args), "BatchMode=yes"); n != 2 {
		t.Errorf("%d of 2 dials ask nothing", n)
	}
	if n := strings.Count(string(args), "ControlPath=none"); n != 1 {
		t.Errorf("%d of 2 dials use no master", n)
	}
	os.WriteFile(os.Getenv("DIR")+"/open", nil, 0o600)
	c, err := s.Dial(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { c.Write([]byte("first")); c.Write([]byte("second")) }()
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if s.Needs() != "" {
		t.Errorf("needs %q after a login", s.Needs())
	}
}

// A login that is not to ask the user and waits behind the connection may wait for a touch. One that
// uses another ssh's connection may wait for that.
func TestSSHMayNeedTouch(t *testing.T) {
	s, _ := fakeSSH(t, `exec sleep 100`)
	s.silence = 100 * time.Millisecond
	for _, want := range []string{"", maybeTouch} {
		if err := fails(t, s, false); s.Needs() != want {
			t.Errorf("%v; needs %q, want %q", err, s.Needs(), want)
		}
	}
}

func TestSSHUnreachable(t *testing.T) {
	s, _ := fakeSSH(t, `echo "ssh: connect to host h port 22: Connection refused" >&2; exit 255`)
	var login *LoginError
	if err := fails(t, s, true); !errors.As(err, &login) || !login.Unreachable() || login.NeedsUser() {
		t.Errorf("%v; want an unreachable host", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := s.Dial(t.Context(), true); err != ErrNoSSH {
		t.Errorf("%v; want ErrNoSSH", err)
	}
	s.Close()
	if _, err := s.Dial(t.Context(), true); err == nil {
		t.Error("it dials after its end")
	}
}

// The end of ssh ends the carrier, and the end of a carrier ends ssh.
func TestSSHEnds(t *testing.T) {
	s, _ := fakeSSH(t, `cat $DIR/grant; read -r line; echo "$line"`)
	c, err := s.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("first"))
	if b, err := io.ReadAll(c); err != nil || string(b) != string(OpenLine([]byte("first"))) {
		t.Errorf("%q, %v", b, err)
	}
	s, _ = fakeSSH(t, `cat $DIR/grant; exec sleep 100`)
	if c, err = s.Dial(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("first"))
	done := make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 1))
		done <- err
	}()
	for s.Port() == 0 {
		time.Sleep(time.Millisecond)
	}
	c.Close()
	if err := <-done; err == nil {
		t.Error("a read succeeds after the end")
	}
	s.Close() // waits for the process
}

// A carrier that is closed before its first write starts no ssh.
func TestSSHUnused(t *testing.T) {
	s, _ := fakeSSH(t, `touch $DIR/started`)
	c, err := s.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := c.Write([]byte("first")); !errors.As(err, new(*StartError)) {
		t.Errorf("write: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.As(err, new(*StartError)) {
		t.Errorf("read: %v", err)
	}
	s.Close()
	if _, err := os.Stat(os.Getenv("DIR") + "/started"); err == nil {
		t.Error("ssh was started")
	}
}

// What a client opens a carrier with is bounded, and read to the byte.
func TestReadOpen(t *testing.T) {
	first, rest, err := ReadOpen(strings.NewReader(string(OpenLine([]byte("a\x00b"))) + "rest\n"))
	if b, _ := io.ReadAll(rest); err != nil || string(first) != "a\x00b" || string(b) != "rest\n" {
		t.Errorf("%q, %q, %v", first, b, err)
	}
	if line := string(OpenLine([]byte{0xfb, 0xff})); line != "quicterm-open +/8=\n" {
		t.Errorf("the line is %q", line)
	}
	for _, in := range []string{"", "quicterm-open", "ls\n", "quicterm-open ?\n", " quicterm-open QQ==\n", "quicterm-open " + strings.Repeat("A", maxOpen+4) + "\n"} {
		if first, _, err := ReadOpen(strings.NewReader(in)); err == nil {
			t.Errorf("%.30q has %q", in, first)
		}
	}
}
