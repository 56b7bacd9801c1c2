package pam

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A program arrives as it was sent, and no part of it is one.
func TestProgram(t *testing.T) {
	for _, p := range []*Program{
		{Path: "/bin/sh", Argv: []string{"-sh"}, Env: []string{}, Dir: "/home/ann", Terminal: true},
		{Path: "/bin/sh", Argv: []string{"sh", "-c", "echo \xff\n", ""}, Env: []string{"A=b=c", "EMPTY="}, Dir: ""},
	} {
		b, err := p.append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseProgram(b)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("got %+v, %v; want %+v", got, err, p)
		}
		for n := range b {
			if got, err := parseProgram(b[:n]); err == nil && len(got.Argv) < len(p.Argv) {
				t.Errorf("%q is %+v", b[:n], got)
			}
		}
	}
	for _, p := range []*Program{ // which would have a variable more
		{Path: "/bin/sh", Argv: []string{"sh", "-c", "true\x00LD_PRELOAD=/tmp/x"}},
		{Path: "/bin/sh", Argv: []string{"sh"}, Env: []string{"A=b\x00LD_PRELOAD=/tmp/x"}},
	} {
		if b, err := p.append(nil); err == nil {
			t.Errorf("%+v is sent as %q", p, b)
		}
	}
	for _, b := range []string{"", "\x00", "/bin/sh\x00/\x00true\x000\x00sh\x00", "/bin/sh\x00/\x00true\x002\x00sh\x00", "/bin/sh\x00/\x00true\x00-1\x00sh\x00"} {
		if got, err := parseProgram([]byte(b)); err == nil {
			t.Errorf("%q is %+v", b, got)
		}
	}
}

func FuzzProgram(f *testing.F) {
	f.Add([]byte("/bin/sh\x00/\x00false\x003\x00sh\x00-c\x00true\x00A=b\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseProgram(b)
		if err != nil {
			return
		}
		sent, err := p.append(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseProgram(sent)
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%q is %+v, and then %+v, %v", b, p, again, err)
		}
	})
}

// What PAM sets takes the place of what the client and the daemon have set, except for what is the
// session's own.
func TestMerge(t *testing.T) {
	got := merge(
		[]string{"HOME=/home/ann", "USER=ann", "PATH=/bin", "LANG=de", "SSH_CLIENT=192.0.2.1 1 2", "QUICTERM_SESSION=1"},
		[]string{"HOME=/", "USER=root", "SHELL=/usr/bin/qtd", "PATH=/pam", "LANG=C", "XDG_SESSION_ID=7", "SSH_CLIENT=none", "LD_PRELOAD=/lib/x", "PWD=/"},
	)
	want := []string{
		"HOME=/home/ann", "LANG=C", "PATH=/pam", "QUICTERM_SESSION=1", "SSH_CLIENT=192.0.2.1 1 2", "USER=ann", "XDG_SESSION_ID=7",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

// A process never becomes that of an account with root's rights, or keeps some.
func TestCredential(t *testing.T) {
	for _, want := range []*syscall.Credential{nil, {Uid: 1000, Gid: 100, Groups: []uint32{100, 1<<32 - 1}}} {
		args := OpenArgs("/bin/su", "ann", want, []string{"hold", "--own-log"})
		if got := append(args[:3:3], args[4:]...); strings.Join(got, " ") != "open-login /bin/su ann hold --own-log" {
			t.Errorf("the arguments are %q", args)
		}
		if got, err := parseCredential(args[3]); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v is %v, %v", want, got, err)
		}
	}
	for _, rights := range []string{
		"", "{}", `{"Uid":0,"Gid":0}`, `{"Uid":0,"Gid":100,"Groups":[100]}`, `{"Uid":-1,"Gid":1}`, `{"Uid":4294967296,"Gid":1}`, `[1000,1000]`, `{"Uid":1000`,
	} {
		if c, err := parseCredential(rights); err == nil {
			t.Errorf("%q is %v", rights, c)
		}
	}
}

// What is not a session of su is refused.
func TestAdoptMalformed(t *testing.T) {
	for _, value := range []string{"", "1", "1,2,3", "10,3", "10,3,x", "10,3,4,5", "-5,3,4"} {
		if s, err := Adopt(value, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%q is %v", value, s)
		}
	}
}
