package permit

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for pattern, want := range map[string][2]bool{ // for connections, for listeners
		"host:22": {true, true}, "[::1]:*": {true, true}, "*:*": {true, true},
		"8080": {false, true}, "*": {false, true}, ":80": {false, true}, "localhost:*": {true, true},
		"": {}, "host": {}, "host:": {}, "host:http": {}, "host:0": {}, "host:65536": {}, "host:-1": {}, "/run/x:1": {}, "a/b": {}, "::1:80": {}, "[::1:80": {},
	} {
		for i, listens := range []bool{false, true} {
			if err := Check(pattern, listens); (err == nil) != want[i] {
				t.Errorf("Check(%q, %t) = %v", pattern, listens, err)
			}
		}
	}
}

func TestDialAndListen(t *testing.T) {
	open := Rules{}
	key := Rules{Dials: []List{{"db:5432", "[::1]:*", "*:443"}}, Listens: []List{{"8080", "local*:90", "Host:91"}}}
	none := Rules{Dials: []List{{}}, Listens: []List{{}}}
	for _, test := range []struct {
		rules          Rules
		host           string
		port           uint16
		dials, listens bool
	}{
		{open, "anything", 1, true, true},
		{key, "db", 5432, true, false},
		{key, "DB", 5432, false, false},
		{key, "db", 5433, false, false},
		{key, "::1", 7, true, false},
		{key, "x", 443, true, false},
		{key, "x", 8080, false, true},
		{key, "", 8080, false, true},
		{key, "LocalHost", 90, false, true},
		{key, "host", 91, false, false},
		{none, "db", 5432, false, false},
		{None(), "db", 5432, false, false},
		{Rules{NoDial: true}, "db", 1, false, true},
		{Rules{NoListen: true}, "db", 1, true, false},
		{key.And(Rules{Dials: []List{{"db:*"}}}), "db", 5432, true, false},
		{key.And(Rules{Dials: []List{{"db:*"}}}), "x", 443, false, false},
		{key.And(none), "db", 5432, false, false},
		{open.And(None()), "db", 5432, false, false},
		{None().And(open), "db", 5432, false, false},
	} {
		if got := test.rules.Dial(test.host, test.port); (got == nil) != test.dials {
			t.Errorf("%s: a connection to %s, port %d: %v", test.rules.Encode(), test.host, test.port, got)
		}
		if got := test.rules.Listen(test.host, test.port); (got == nil) != test.listens {
			t.Errorf("%s: a listener at %s, port %d: %v", test.rules.Encode(), test.host, test.port, got)
		}
		// Patterns, and what refuses the same by TCP, refuse sockets.
		if err := test.rules.Socket(false, "/s"); err == nil && (test.rules.NoDial || len(test.rules.Dials) > 0) {
			t.Errorf("%s: a connection to a socket", test.rules.Encode())
		}
		if err := test.rules.Socket(true, "/s"); err == nil && (test.rules.NoListen || len(test.rules.Listens) > 0) {
			t.Errorf("%s: a listener at a socket", test.rules.Encode())
		}
	}
}

func TestBind(t *testing.T) {
	for _, test := range []struct{ gateway, host, want string }{
		{"", "localhost", "127.0.0.1 ::1"}, {"", "*", "127.0.0.1 ::1"}, {"", "10.0.0.1", "127.0.0.1 ::1"}, {"", "::1", "::1"},
		{"yes", "localhost", ""}, {"yes", "10.0.0.1", ""},
		{"clientspecified", "*", ""}, {"clientspecified", "", ""}, {"clientspecified", "10.0.0.1", "10.0.0.1"},
		{"clientspecified", "localhost", "127.0.0.1 ::1"}, {"clientspecified", "127.0.0.1", "127.0.0.1"},
	} {
		rules := Rules{Gateway: test.gateway}
		if got := strings.Join(rules.Bind(test.host), " "); got != test.want {
			t.Errorf("GatewayPorts %q, %q: %q, want %q", test.gateway, test.host, got, test.want)
		}
	}
}

// What refuses ports says nothing of the agent, and both count together.
func TestRefuseAgent(t *testing.T) {
	ports, agent := Rules{}, Rules{NoAgent: true}
	ports.Refuse()
	for _, test := range []struct {
		rules          Rules
		agent, nothing bool
	}{
		{Rules{}, true, false}, {ports, true, false}, {agent, false, false}, {None(), false, true},
		{ports.And(agent), false, true}, {agent.And(ports), false, true}, {ports.And(Rules{}), true, false},
	} {
		if got := test.rules.Agent(); (got == nil) != test.agent || test.rules.Nothing() != test.nothing {
			t.Errorf("%s: an agent: %v; nothing: %t", test.rules.Encode(), got, test.rules.Nothing())
		}
	}
}

// What cannot be decoded permits nothing.
func TestDecode(t *testing.T) {
	rules := Rules{NoListen: true, Dials: []List{{"a:1"}, {}}, Gateway: "yes", Mask: 0o117, Unlink: true}
	got, err := Decode(rules.Encode())
	if err != nil || got.Encode() != rules.Encode() || got.Dial("a", 1) == nil {
		t.Errorf("Decode = %s, %v; want %s", got.Encode(), err, rules.Encode())
	}
	long := Rules{Dials: []List{{strings.Repeat("x", MaxBytes)}}}
	for _, text := range []string{"", "{", "[]", `{"NoDail":true}`, "null", "{} x", long.Encode()} {
		got, err := Decode(text)
		if err == nil || !got.Nothing() {
			t.Errorf("%.20q: %s, %v", text, got.Encode(), err)
		}
	}
}
