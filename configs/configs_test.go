package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The sample files have every setting with its default.
func TestSamples(t *testing.T) {
	var client Client
	if err := decode(SampleClient, &client); err != nil {
		t.Error(err)
	}
	var server Server
	if err := decode(SampleServer, &server); err != nil {
		t.Error(err)
	}
	compare(t, "qt.toml", SampleClient, client, *DefaultClient())
	compare(t, "qtd.toml", SampleServer, server, *DefaultServer())
	if err := client.check(); err != nil {
		t.Error(err)
	}
	if err := server.check(); err != nil {
		t.Error(err)
	}
}

func compare(t *testing.T, file, content string, got, want any) {
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		key := g.Type().Field(i).Tag.Get("toml")
		if key == "interfaces" {
			_, table, _ := strings.Cut(content, "\n["+key+"]")
			compare(t, file+", "+key, table, g.Field(i).Interface(), w.Field(i).Interface())
			continue
		}
		if !strings.Contains(content, "\n"+key+" = ") {
			t.Errorf("%s does not have %s", file, key)
		}
		a, b := g.Field(i), w.Field(i)
		if a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			t.Errorf("%s: %s = %v, the default is %v", file, key, a, b)
		}
	}
}

func TestErrors(t *testing.T) {
	tests := []struct{ content, want string }{
		{"port = 1\n\nprot = 2\n", `:3:1: there is no setting "prot"`},
		{"port = 1\nport = 2\n", ":2:"},
		{"port = 70000", ":1:8: port: the number is out of range"},
		{"port = \"x\"", ":1:8: port: the value has the wrong type"},
		{"keepalive_idle = \"5\"", `:1:18: keepalive_idle: "5" is not a duration`},
		{"\n[interfaces]\nprefer = [\"a\"]\n", ""},
		{"keepalive_idle = 5", `:1:18: keepalive_idle: "5" is not a duration: write it like 90s`},
		{"# x\nkeepalive_idle = \"-5s\"", ":2:18: keepalive_idle is -5s: it must be"},
		{"keepalive_idle = \"1ms\"", ":1:18: keepalive_idle is 1ms: it must be from 1s to 1m0s"},
		{"escape_char = \"~~\"", ":1:15: escape_char is \"~~\": it must be"},
		{"send_env = [\"A\",\n  5]", ":"},
		{"[interfaces]\n prefer = [\"a\"]\n avoid = [\"b\", \"[\"]", ":3:16: interfaces.avoid has \"[\", which is not a pattern"},
		{"interfaces.avoid = [\"[\"]", ":1:21: interfaces.avoid has"},
		{"interfaces = {avoid = [\"[\"]}", ": interfaces.avoid has"},
		{"send_env = [\"[\"]", ":1:13: send_env has"},
		{"  compression   = \"yes\" # x", `:1:19: compression is "yes": it must be one of auto, on, off`},
		{"port = ", ":1:"},
	}
	for _, test := range tests {
		file := filepath.Join(t.TempDir(), "qt.toml")
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LoadClient(file)
		if test.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), file+test.want) {
			t.Errorf("%q: error %v, want it to begin with %q", test.content, err, "FILE"+test.want)
		}
	}
	if _, err := LoadClient(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a given file that does not exist: no error")
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if c, err := LoadClient(""); err != nil || !reflect.DeepEqual(c, DefaultClient()) {
		t.Errorf("without a file: %v, %v; want the defaults", c, err)
	}
}

// A relative directory would depend on where qtd is started.
func TestRelativeDirectory(t *testing.T) {
	for _, key := range []string{"runtime_dir", "state_dir"} {
		file := filepath.Join(t.TempDir(), "qtd.toml")
		if err := os.WriteFile(file, []byte(key+` = "run"`), 0o600); err != nil {
			t.Fatal(err)
		}
		want := file + ":1:" + strconv.Itoa(len(key+" = ")+1) + ": " + key + ` is "run": it must begin with /`
		if _, err := LoadServer(file); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Each value that cannot be is an error that says where it is.
func TestWrongServerValues(t *testing.T) {
	for line, want := range map[string]string{
		`max_unauthenticated = 0`:    "max_unauthenticated is 0",
		`buffer_size = "1B"`:         "buffer_size is 1B",
		`buffer_size = 5`:            `buffer_size: "5" is not a size`,
		`max_buffer_total = "0"`:     "max_buffer_total is 0",
		`sshd_policy = "maybe"`:      `sshd_policy is "maybe"`,
		`persist_dir = "sessions"`:   `persist_dir is "sessions"`,
		`metrics = ":1"`:             `metrics is ":1"`,
		`listen = [":1", "4433"]`:    `listen has "4433"`,
		`listen = [":1", "x:99999"]`: `listen has "x:99999"`,
		`listen = [":1", "[::1:1"]`:  `listen has "[::1:1"`,
		`accept_env = ["A", "[a"]`:   `accept_env has "[a"`,
		`allow_users = ["a", "b"]`:   "not b", // by a further check
	} {
		file := filepath.Join(t.TempDir(), "qtd.toml")
		if err := os.WriteFile(file, []byte("# first\n"+line), 0o600); err != nil {
			t.Fatal(err)
		}
		at := strings.Index(line, "= ") + len("= ") + 1
		if i := strings.Index(line, ", "); i > 0 {
			at = i + len(", ") + 1
		}
		want = fmt.Sprintf("%s:2:%d: %s", file, at, want)
		_, err := LoadServer(file, func(s *Server) error {
			if len(s.AllowUsers) > 1 {
				return &Wrong{"allow_users", 1, errors.New("not b")}
			}
			return nil
		})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", line, err, want)
		}
	}
}

// The zero value, and values that no file could have, mean the defaults.
func TestWithDefaults(t *testing.T) {
	for _, s := range []*Server{nil, {}, {BufferSize: Size{-1}, DetachedTTL: Duration{-1}, MaxSessionsPerUser: -1}} {
		if got := s.WithDefaults(); !reflect.DeepEqual(got, DefaultServer()) {
			t.Errorf("%+v with defaults is %+v", s, got)
		}
	}
	server := DefaultServer()
	server.DetachedTTL, server.AcceptEnv, server.Listen = Duration{time.Hour}, []string{}, []string{":1"}
	if got := server.WithDefaults(); !reflect.DeepEqual(got, server) {
		t.Errorf("%+v became %+v", server, got)
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "5B": 5, "512KiB": 512 << 10, "64 MiB": 64 << 20, "2GiB": 2 << 30} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s.Bytes != want {
			t.Errorf("%q = %d, %v; want %d", text, s.Bytes, err, want)
		}
	}
	for _, text := range []string{"", "5", "-5B", "5MB", "MiB", "9999999999GiB", "1.5MiB"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	if got := Bytes(64 << 20).String(); got != "64MiB" {
		t.Errorf("64 MiB is written as %s", got)
	}
	if got := (Duration{90 * time.Second}).String(); got != "1m30s" {
		t.Errorf("90 s are written as %s", got)
	}
}

func TestShare(t *testing.T) {
	for text, want := range map[string]Bytes{"25%": 250, "100 %": 1000, "1%": 10, "7B": 7, "1KiB": 1 << 10} {
		var s Share
		if err := s.UnmarshalText([]byte(text)); err != nil || s.Of(1000) != want {
			t.Errorf("%q of 1000 = %d, %v; want %d", text, s.Of(1000), err, want)
		}
	}
	for _, text := range []string{"", "%", "0%", "101%", "-5%", "2.5%", "300%", "25"} {
		var s Share
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	for _, s := range []Share{{Percent: 25}, {Size: Size{1 << 20}}} {
		var got Share
		if err := got.UnmarshalText([]byte(s.String())); err != nil || got != s {
			t.Errorf("%v is read as %v, %v", s, got, err)
		}
	}
	file := filepath.Join(t.TempDir(), "qtd.toml")
	if err := os.WriteFile(file, []byte(`max_buffer_total = "0"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadServer(file); err == nil {
		t.Error("max_buffer_total of 0 bytes: no error")
	}
}

// A file without end, such as a device, does not fill the memory.
func TestEndlessFile(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip(err)
	}
	if _, err := LoadServer("/dev/zero"); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("%v; want that it is too long", err)
	}
}

// Metrics have no login: they are served to this machine only.
func TestMetricsAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, "127.0.0.1:9443": true, "127.3.2.1:1": true, "[::1]:9443": true, "unix:/run/m.sock": true,
		":9443": false, "0.0.0.0:9443": false, "[::]:9443": false, "192.0.2.1:9443": false, "localhost:9443": false,
		"127.0.0.1": false, "127.0.0.1:0": false, "unix:m.sock": false, "unix:": false, "/run/m.sock": false,
	} {
		s := DefaultServer()
		s.Metrics = address
		if err := s.check(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "127.0.0.1:9443") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
