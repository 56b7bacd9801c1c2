package auth

import (
	"crypto/rand"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/forward/permit"
)

var (
	client = netip.MustParseAddr("192.0.2.7")
	today  = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
)

// lookup looks one key up in a file.
func lookup(content []byte, key ssh.PublicKey, from netip.Addr) (*Permissions, error) {
	s := NewSearch([]Query{{Key: key.Marshal(), From: from}}, today)
	s.Read("keys", content)
	v := s.Verdicts()[0]
	return v.Allowed, v.Refused
}

// authorize returns what the options before the key {a} in a line allow, in words.
func authorize(content string, from netip.Addr) string {
	p, err := lookup([]byte(fill(content)), public(edKey(1)), from)
	var option *optionError
	switch {
	case errors.As(err, &option):
		return option.Option + ": " + option.Why
	case err != nil:
		return err.Error()
	}
	words := []string{"allowed"}
	if p.Command != "" {
		words = append(words, "command <"+p.Command+">")
	}
	if p.NoPTY {
		words = append(words, "no pty")
	}
	if p.Verified {
		words = append(words, "verified")
	}
	return strings.Join(words, ", ")
}

// What may be forwarded follows the last option that is about it.
func TestForwardingOptions(t *testing.T) {
	for options, want := range map[string]permit.Rules{
		"no-pty":                                        {},
		"restrict":                                      permit.None(),
		"no-agent-forwarding":                           {NoAgent: true},
		"restrict,port-forwarding":                      {NoAgent: true},
		"no-agent-forwarding,port-forwarding":           {NoAgent: true},
		"restrict,agent-forwarding,port-forwarding":     {},
		"no-agent-forwarding,Agent-Forwarding":          {},
		"agent-forwarding,restrict":                     permit.None(),
		"restrict,agent-forwarding":                     {NoDial: true, NoListen: true, NoDialSocket: true, NoListenSocket: true},
		"no-port-forwarding,no-agent-forwarding":        permit.None(),
		"port-forwarding,no-port-forwarding,no-user-rc": {NoDial: true, NoListen: true, NoDialSocket: true, NoListenSocket: true},
	} {
		l, err := readOptions(strings.Split(options, ","), netip.MustParseAddr("192.0.2.7"), time.Now())
		if err != nil || l.Forward.Encode() != want.Encode() {
			t.Errorf("%s: %+v, %v", options, l, err)
		}
	}
}

func TestOptions(t *testing.T) {
	const unsupported = ": is not supported by quicterm"
	for _, test := range []struct{ options, want string }{
		{``, "allowed"},
		{`no-pty`, "allowed, no pty"},
		{`restrict`, "allowed, no pty"},
		{`Restrict`, "allowed, no pty"},
		{`restrict,pty`, "allowed"},
		{`PTY,restrict`, "allowed, no pty"},
		{`verify-required`, "allowed, verified"},
		{`command="echo"`, "allowed, command <echo>"},
		{`COMMAND="echo"`, "allowed, command <echo>"},
		{`restrict,command="a b"`, "allowed, command <a b>, no pty"},
		{`agent-forwarding,no-agent-forwarding,port-forwarding,no-port-forwarding`, "allowed"},
		{`x11-forwarding,no-X11-forwarding,user-rc,no-user-rc,no-touch-required`, "allowed"},
		{`permitopen="h:1",permitlisten="2",tunnel="0"`, "allowed"},
		{`,no-pty,,`, "allowed, no pty"},

		{`command="a,b \"c\" d=\"e,f\"",no-pty`, `allowed, command <a,b "c" d="e,f">, no pty`},
		{`command="a\b"`, `allowed, command <a\b>`},
		{`command="\"\""`, `allowed, command <"">`},
		{`command="#"`, "allowed, command <#>"},
		{`command=""`, "command: names no command"},
		{`command`, "command: names no command"},
		{`command="a",command="b"`, "command: must be given once"},
		{`command=a`, "command: its value is not in quotes"},
		{`command="`, ErrNotAuthorized.Error()}, // the quote takes in the key
		{`command="a"b`, "command: its value is not in quotes"},
		{`command=a"b"`, "command: its value is not in quotes"},
		{`command="a"b"c"`, "command: its value has a quote without a backslash"},
		{`command="a""b"`, "command: its value has a quote without a backslash"},
		{"command=\"a\xff\"", "command: must be UTF-8, without NUL, of at most 65536 bytes"},
		{"command=\"a\x00\"", "command: must be UTF-8, without NUL, of at most 65536 bytes"},
		{`command="` + strings.Repeat("x", maxCommand+1) + `"`, "command: must be UTF-8, without NUL, of at most 65536 bytes"},
		{`restrict="no"`, "restrict: takes no value"},
		{`restrict,pty="no"`, "pty: takes no value"},

		{`cert-authority`, "key is not in authorized_keys"},
		{`cert-authority,principals="me"`, "key is not in authorized_keys"},
		{`principals="me"`, "principals: is for a cert-authority"},
		{`principals="me",principals="you"`, "principals: must be given once"},
		{`environment="A=b",environment="A=c",environment="B="`, "allowed"},
		{`environment="A"`, "environment: must be NAME=value"},
		{`environment="A-B=c"`, "environment: must be NAME=value"},
		{`touch-required,no-verify-required,verify-required`, "allowed, verified"},
		{`permitopen="host:22",permitopen="[::1]:*",permitlisten="8080",permitlisten="localhost:*",tunnel="0"`, "allowed"},
		{`permitopen="host"`, "permitopen: is malformed"},
		{`permitopen="host:http"`, "permitopen: is malformed"},
		{`permitlisten=""`, "permitlisten: is malformed"},
		{`tunnel="x"`, "tunnel: is malformed"},
		{`zos-key-ring-label="x"`, "zos-key-ring-label" + unsupported},
		{`new-option`, "new-option" + unsupported},
		{`="x"`, unsupported},

		{`expiry-time="20260306"`, "allowed"},
		{`expiry-time="20260304Z"`, "expiry-time: has passed"},
		{`expiry-time="202603041201Z"`, "allowed"},
		{`expiry-time="202603041200Z"`, "expiry-time: has passed"},
		{`expiry-time="20260304120001Z"`, "allowed"},
		{`expiry-time="20260304120000Z"`, "expiry-time: has passed"},
		{`expiry-time="20270101",expiry-time="20250101"`, "expiry-time: has passed"},
		{`expiry-time="20260230"`, `expiry-time: parsing time "20260230": day out of range`},
		{`expiry-time="2027"`, `expiry-time: "2027" is not a time: use YYYYMMDD or YYYYMMDDHHMM`},
		{`expiry-time="202603041201utc"`, "allowed"},
		{`expiry-time="202603041200UTC"`, "expiry-time: has passed"},
		{`expiry-time="202603041201z"`, "allowed"},
		{`expiry-time="20270101CET"`, `expiry-time: "20270101CET" is not a time: use YYYYMMDD or YYYYMMDDHHMM`},
		{`expiry-time=""`, `expiry-time: "" is not a time: use YYYYMMDD or YYYYMMDDHHMM`},
		{`expiry-time`, `expiry-time: "" is not a time: use YYYYMMDD or YYYYMMDDHHMM`},

		{`from="192.0.2.7"`, "allowed"},
		{`from="192.0.2.8"`, "from: does not allow 192.0.2.7"},
		{`from=""`, "from: an empty pattern"},
		{`from`, "from: an empty pattern"},
		{`from="*,"`, "from: an empty pattern"},
		{`from="*,!"`, "from: an empty pattern"},
		{`from="*"`, "allowed"},
		{`from="*",from="10.*"`, "from: must be given once"},
		{`from="10.*,192.0.2.0/24",no-pty`, "allowed, no pty"},
		{`from="*,!192.0.2.7",restrict`, "from: does not allow 192.0.2.7"},
	} {
		content := test.options + " {a}"
		if got := authorize(content, client); got != test.want {
			t.Errorf("%s: got %q, want %q", content, got, test.want)
		}
	}
}

func TestFrom(t *testing.T) {
	for _, test := range []struct {
		patterns, addr string
		want           bool
	}{
		{"192.0.2.*", "192.0.2.7", true},
		{"192.0.?.7", "192.0.2.7", true},
		{"192.0.2.??", "192.0.2.7", false},
		{"*.7", "192.0.2.7", true},
		{"192.0.2.7", "::ffff:192.0.2.7", true},
		{"192.0.2.0/24", "::ffff:192.0.2.7", true},
		{"10.0.0.0/8, 192.0.2.7 ", "192.0.2.7", true},
		{"192.0.2.[0-9]", "192.0.2.7", false},
		{"2001:db8::/32", "2001:db8::1", true},
		{"2001:db8::/32", "2001:db9::1", false},
		{"2001:DB8:0::1", "2001:db8::1", true},
		{"2001:DB8::*", "2001:db8::1", true},
		{"fe80::/10", "fe80::1%eth0", true},
		{"fe80::1", "fe80::1%eth0", true},
		{"host.example.org", "192.0.2.7", false},
		{"*.example.org,192.0.2.7", "192.0.2.7", true},
		// A pattern that refuses an address does so in every spelling.
		{"!192.0.2.7", "192.0.2.8", false},
		{"*,!192.0.2.7", "192.0.2.8", true},
		{"*,!192.0.2.7", "192.0.2.7", false},
		{"!192.0.2.7,*", "::ffff:192.0.2.7", false},
		{"*,!192.0.2.0/24", "192.0.2.7", false},
		{"*,!192.0.2.*", "192.0.2.7", false},
		{"*,!192.0.3.*", "192.0.2.7", true},
		{"*,!2001:db8::1", "2001:db8::2", true},
		{"*,!2001:0db8:0::1", "2001:db8::1", false},
		{"*,!2001:DB8::1", "2001:db8::1", false},
		{"*,!2001:DB8::*", "2001:db8::1", false},
		{"*,!2001:DB8::*", "192.0.2.7", true},
		{"*,!192.0.2.07", "192.0.2.7", false},
		{"*,!host.example.org", "192.0.2.7", false},
		{"*,!*.de", "192.0.2.7", false}, // a domain, though all hexadecimal digits
		{"*,!cafe", "192.0.2.7", false},
	} {
		if got, err := matchFrom(test.patterns, netip.MustParseAddr(test.addr)); got != test.want || err != nil {
			t.Errorf("from=%q and %s: got %v, %v; want %v", test.patterns, test.addr, got, err, test.want)
		}
	}
}

// A network with bits beyond its length is an error, as in sshd: the line allows nothing,
// whatever else is in the list.
func TestFromHostBits(t *testing.T) {
	for _, patterns := range []string{
		"10.1.2.3/8", "192.0.2.9/24", "192.0.2.0/33", "192.0.2.0/129", "192.0.2.0/x", "2001:db8::1/32", "::ffff:192.0.2.7/95",
		"192.0.2.7,10.1.2.3/8", "10.1.2.3/8,192.0.2.7", "*,10.1.2.3/8", "*,!192.0.2.0/33", "*,!10.1.2.3/8",
	} {
		if matches, err := matchFrom(patterns, client); matches || err == nil {
			t.Errorf("from=%q: got %v, want an error", patterns, matches)
		}
		if got := authorize(`from="`+patterns+`" {a}`, client); !strings.HasPrefix(got, "from: ") || !strings.Contains(got, "is not a network") {
			t.Errorf("from=%q: got %q", patterns, got)
		}
	}
	for _, patterns := range []string{"10.0.0.0/8,192.0.2.7", "192.0.2.7/32", "0.0.0.0/0", "*,10/8"} {
		if matches, err := matchFrom(patterns, client); !matches || err != nil {
			t.Errorf("from=%q: got %v, %v; want a match", patterns, matches, err)
		}
	}
}

// One pass answers for all keys and addresses: each gets the first line that allows it.
func TestSearch(t *testing.T) {
	a, b := public(edKey(1)).Marshal(), public(edKey(2)).Marshal()
	elsewhere := netip.MustParseAddr("10.0.0.1")
	s := NewSearch([]Query{
		{Key: a, From: client}, {Key: b, From: client}, {Key: a, From: elsewhere},
		{From: client}, {Key: []byte("x"), From: client}, {Key: a, From: client},
	}, today)
	s.Read("keys", []byte(fill("from=\"10.*\",no-pty {a}\n{a}\nfrom=\"10.*\" {b}")))
	s.Read("keys", []byte(fill("no-pty {b}\nverify-required {a}")))
	want := []*Permissions{{}, {NoPTY: true}, {NoPTY: true}, nil, nil, {}}
	for i, v := range s.Verdicts() {
		switch {
		case want[i] == nil && (v.Allowed != nil || !errors.Is(v.Refused, ErrNotAuthorized)),
			want[i] != nil && (v.Refused != nil || !reflect.DeepEqual(*v.Allowed, *want[i])):
			t.Errorf("query %d: got %v, %v; want %v", i, v.Allowed, v.Refused, want[i])
		}
	}
}

func TestAuthorizedKeysFile(t *testing.T) {
	const denied = "key is not in authorized_keys"
	bad := strings.Join([]string{
		"", " \t", "#", "# {a}", "#{a}", "{b}", "ssh-ed25519", "ssh-ed25519 ", "ssh-ed25519 AAAA",
		`command="open {a}`, "restrict " + strings.Fields(fill("{a}"))[1], "ssh-rsa " + strings.Fields(fill("{a}"))[1],
		fill("{a}")[:40], strings.Repeat("x", 1<<17), strings.Repeat(`",`, 1<<10), "\x00\xff \xfe \x00",
		"restrict,no-pty", "no-pty  ", "256 35 123456789 rsa1",
	}, "\n")
	for _, test := range []struct{ name, content, want string }{
		{"empty", "", denied},
		{"lines that make no sense", bad, denied},
		{"a key among them", bad + "\nno-pty {a}\n" + bad, "allowed, no pty"},
		{"comment behind", "{a} me and # others", "allowed"},
		{"blanks and tabs", " \tno-pty \t {a}\t\n", "allowed, no pty"},
		{"CRLF", "\r\n# x\r\nno-pty {a}\r\n", "allowed, no pty"},
		{"the first that has it", "no-pty {a}\n{a}", "allowed, no pty"},
		{"the first that allows it", `from="10.*" {a}` + "\n{b}\n" + `command="x" {a}` + "\n{a}", "allowed, command <x>"},
		{"none allows it", `from="10.*" {a}` + "\n{b}\nzos=\"A=b\" {a}", "zos: is not supported by quicterm"},
		{"authority above", "cert-authority {a}\n{a}", "allowed"},
		{"quoted key", `command="{a}" {b}`, denied},
	} {
		if got := authorize(test.content, client); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// A certificate is neither the key in it nor the key of its authority.
func TestCertificateIsNotItsKey(t *testing.T) {
	cert := &ssh.Certificate{Key: public(edKey(1)), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, must(ssh.NewSignerFromSigner(edKey(2)))); err != nil {
		t.Fatal(err)
	}
	content := []byte(fill("{a}\n{b}"))
	if p, err := lookup(content, cert, client); !errors.Is(err, ErrNotAuthorized) {
		t.Errorf("got %v, %v; want %v", p, err, ErrNotAuthorized)
	}
}

// Only a key with a command is limited to its own sessions, with that command.
func TestScope(t *testing.T) {
	free := Permissions{NoPTY: true}
	if got := free.Scope(public(edKey(1))); got != "" {
		t.Errorf("a free key has the scope %q, want none", got)
	}
	seen := map[string]bool{"": true}
	for _, command := range []string{"x", "y"} {
		forced, verified := Permissions{Command: command}, Permissions{Command: command, Verified: true}
		for _, key := range []ssh.PublicKey{public(edKey(1)), public(edKey(2)), nil} {
			scope := forced.Scope(key)
			if seen[scope] {
				t.Errorf("%s with %v has the scope of others", command, key)
			}
			if seen[scope] = true; verified.Scope(key) != scope {
				t.Errorf("%s with %v has two scopes", command, key)
			}
		}
	}
}

// A certificate, which is renewed often, has the scope of its key.
func TestScopeOfCertificate(t *testing.T) {
	forced := Permissions{Command: "x"}
	cert := &ssh.Certificate{Key: public(edKey(1)), SignatureKey: public(edKey(2)), Serial: 1}
	if forced.Scope(cert) != forced.Scope(public(edKey(1))) {
		t.Error("a certificate has another scope than its key")
	}
}

// A line allows nothing to a key that is not in it, and no option at its start is
// ignored.
func FuzzAuthorizedKeys(f *testing.F) {
	key := public(edKey(1))
	blob := strings.Fields(text(key))[1]
	f.Fuzz(func(t *testing.T, line string) {
		p, err := lookup([]byte(line), key, client)
		again, againErr := lookup([]byte("# x\n\nno-pty x\n"+line+"\n"), key, client)
		if (err == nil) != (againErr == nil) || err == nil && !reflect.DeepEqual(*p, *again) {
			t.Errorf("got %v, %v; and among others %v, %v", p, err, again, againErr)
		}
		if err != nil {
			return
		}
		if !strings.Contains(strings.ReplaceAll(line, "\r", ""), blob) {
			t.Error("the key is not in the line, and allowed")
		}
		if strings.Contains(line, "\n") {
			return
		}
		options := strings.ToLower(strings.Trim(line, " \t"))
		for option, lost := range map[string]bool{
			"command=": p.Command == "", "restrict ": !p.NoPTY, "no-pty ": !p.NoPTY, "verify-required": !p.Verified,
			"cert-authority": true, `from="10.`: !strings.Contains(options, ","),
		} {
			if lost && strings.HasPrefix(options, option) {
				t.Errorf("allowed as %+v in spite of the option %s", *p, option)
			}
		}
	})
}

func TestMatchPattern(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "", false}, {"*", "", true}, {"?", "", false}, {"?", "a", true},
		{"a*c", "abcbc", true}, {"a*c", "abcb", false}, {"*a*a*", "aa", true}, {"*a*a*", "a", false}, {"a?", "a", false},
		{"A", "a", false},
	} {
		if got := MatchPattern(test.pattern, test.text); got != test.want {
			t.Errorf("%q, %q: %v", test.pattern, test.text, got)
		}
	}
}
