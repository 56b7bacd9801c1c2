package forwards

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		kind           Kind
		text           string
		listen, target string
	}{
		{Local, "8080:db:80", "localhost:8080", "db:80"},
		{Local, "[::1]:8080:[fe80::1]:80", "[::1]:8080", "[fe80::1]:80"},
		{Local, "*:8080:db:80", "*:8080", "db:80"},
		{Local, ":8080:db:80", "*:8080", "db:80"},
		{Local, "[*]:8080:[db]:80", "*:8080", "db:80"},
		{Local, "8080:/run/s", "localhost:8080", "/run/s"},
		{Local, "1.2.3.4:8080:/run/s", "1.2.3.4:8080", "/run/s"},
		{Local, "./s:db:80", "./s", "db:80"},
		{Local, "/a:/b", "/a", "/b"},
		{Local, "udp/53:10.0.0.2:53", "udp/localhost:53", "udp/10.0.0.2:53"},
		{Local, "udp/[::]:53:[::1]:5353", "udp/[::]:53", "udp/[::1]:5353"},
		{Remote, "0:db:80", "localhost:0", "db:80"},
		{Remote, "/a:db:80", "/a", "db:80"},
		{Remote, "9000", "localhost:9000", ":0"},
		{Remote, "*:9000", "*:9000", ":0"},
		{Dynamic, "1080", "localhost:1080", ":0"},
		{Dynamic, "[::1]:1080", "[::1]:1080", ":0"},
	} {
		spec, err := Parse(test.kind, test.text)
		if err != nil || spec.Kind != test.kind || spec.Listen.String() != test.listen || spec.Target.String() != test.target {
			t.Errorf("-%c %s: %v, %v, %v; want %s, %s", test.kind, test.text, spec.Listen, spec.Target, err, test.listen, test.target)
		}
	}
	for kind, texts := range map[Kind][]string{
		Local: {"", "8080", "8080:80", "8080:db", "0:db:80", "8080:db:0", "x:db:80", "8080:db:x", "8080:db:65536", "a:b:8080:db:80",
			"[::1:8080:db:80", "[::1]8080:db:80", "8080:db:80:", "8080::80", "8080:/s:80:x", "udp/53", "udp/53:/s", "udp//s:db:53", "udp/0:db:53", "udp/"},
		Remote:  {"udp/53:db:53", "udp/53", "", "x", "a:b:c", "9000:db"},
		Dynamic: {"udp/1080", "", "0", "x", "1080:db:80", "/run/s/:x"},
	} {
		for _, text := range texts {
			if spec, err := Parse(kind, text); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("-%c %s: %+v, %v", kind, text, spec, err)
			}
		}
	}
	for _, text := range []string{"udp/53", "udp/53:/s", "udp/[::1:53"} {
		if _, err := Parse(Local, text); err == nil || !strings.HasSuffix(err.Error(), "write it as udp/[bind:]port:host:port") {
			t.Errorf("-L %s: %v", text, err)
		}
	}
}

// A socksWire has what a program sends by SOCKS, and what it gets.
type socksWire struct {
	io.Reader
	bytes.Buffer
}

func (w *socksWire) Read(b []byte) (int, error) { return w.Reader.Read(b) }

func TestSOCKS(t *testing.T) {
	for request, want := range map[string]string{
		"\x04\x01\x00\x50\x7f\x00\x00\x01\x00":                                       "127.0.0.1:80",
		"\x04\x01\x15\x38\x00\x00\x00\x01jo\x00db\x00":                               "db:5432",
		"\x04\x01\x00\x50\x00\x00\x00\x00\x00":                                       "0.0.0.0:80",
		"\x05\x01\x00\x05\x01\x00\x03\x02db\x15\x38":                                 "db:5432",
		"\x05\x02\x02\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50":                   "127.0.0.1:80",
		"\x05\x01\x00\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x01\xbb": "[::1]:443",
	} {
		w := &socksWire{Reader: strings.NewReader(request)}
		got, answer, err := readSOCKS(w)
		if err != nil || got.String() != want || request[0] == 5 && w.String() != "\x05\x00" {
			t.Errorf("%q: %v, %v, %q; want %s", request, got, err, w.String(), want)
			continue
		}
		w.Reset()
		for _, reply := range []byte{socksDone, socksFailed, socksRefused} {
			answer(reply)
		}
		if want := map[byte]string{
			4: "\x00\x5a\x00\x00\x00\x00\x00\x00\x00\x5b\x00\x00\x00\x00\x00\x00\x00\x5b\x00\x00\x00\x00\x00\x00",
			5: "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05\x01\x00\x01\x00\x00\x00\x00\x00\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00",
		}[request[0]]; w.String() != want {
			t.Errorf("%q is answered with %q, want %q", request, w.String(), want)
		}
		for n := range request {
			if got, _, err := readSOCKS(&socksWire{Reader: strings.NewReader(request[:n])}); err == nil {
				t.Errorf("the first %d bytes of %q: %v", n, request, got)
			}
		}
	}
	for request, want := range map[string]string{
		"\x04\x02\x00\x50\x7f\x00\x00\x01\x00":                        "",
		"\x04\x01\x00\x50\x00\x00\x00\x01\x00\x00":                    "",
		"\x04\x01\x00\x50\x7f\x00\x00\x01" + strings.Repeat("u", 300): "",
		"\x06\x01\x00": "",
		"\x05\x01\x02": "\x05\xff",
		"\x05\x00":     "\x05\xff",
		"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00P": "\x05\x00\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00",
		"\x05\x01\x00\x05\x01\x00\x09\x7f\x00\x00\x01\x00P": "\x05\x00\x05\x08\x00\x01\x00\x00\x00\x00\x00\x00",
		"\x05\x01\x00\x05\x01\x00\x03\x00\x00P":             "\x05\x00\x05\x08\x00\x01\x00\x00\x00\x00\x00\x00",
	} {
		w := &socksWire{Reader: strings.NewReader(request)}
		if got, _, err := readSOCKS(w); err == nil || w.String() != want {
			t.Errorf("%q: %v, %v, %q; want %q", request, got, err, w.String(), want)
		}
	}
}
