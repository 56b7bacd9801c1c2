package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// serve runs a proxy that expects bytes and answers with others, in turn, and then repeats what it
// is sent. It returns its host and port.
func serve(t *testing.T, dialog ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		for i, part := range dialog {
			if i%2 == 1 {
				io.WriteString(c, part)
				continue
			}
			got := make([]byte, len(part))
			if _, err := io.ReadFull(c, got); err != nil || string(got) != part {
				t.Errorf("the proxy got %q, %v; want %q", got, err, part)
				return
			}
		}
		io.Copy(c, c)
	}()
	return l.Addr().String()
}

const (
	socksOK   = "\x05\x00"
	socksDone = "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
	httpHead  = "CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: 192.0.2.1:443\r\n"
)

func TestDial(t *testing.T) {
	for _, test := range []struct {
		why, scheme, user, to string
		dialog                []string
	}{
		{"SOCKS", "socks5", "", "192.0.2.1:443",
			[]string{"\x05\x01\x00", socksOK, "\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb", socksDone}},
		{"SOCKS to IPv6, which answers with a name", "socks5", "", "[2001:db8::1]:443",
			[]string{"\x05\x01\x00", socksOK, "\x05\x01\x00\x04\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x01\xbb", "\x05\x00\x00\x03\x01a\x00\x00"}},
		{"SOCKS with a password", "socks5", "me:se%20cret@", "192.0.2.1:443",
			[]string{"\x05\x02\x00\x02", "\x05\x02", "\x01\x02me\x07se cret", "\x01\x00", "\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb", socksDone}},
		{"HTTP", "http", "", "192.0.2.1:443", []string{httpHead + "\r\n", "HTTP/1.1 200 Connected\r\nVia: x\r\n\r\n"}},
		{"HTTP with a password", "http", "me:secret@", "192.0.2.1:443",
			[]string{httpHead + "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n"}},
	} {
		p, err := Parse(test.scheme + "://" + test.user + serve(t, test.dialog...))
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Dial(t.Context(), "tcp", test.to)
		if err != nil {
			t.Errorf("%s: %v", test.why, err)
			continue
		}
		io.WriteString(c, "through")
		b := make([]byte, 7)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "through" {
			t.Errorf("%s: %q, %v", test.why, b, err)
		}
		c.Close()
	}
}

// fails dials through a proxy and returns the error.
func fails(t *testing.T, url string) error {
	t.Helper()
	p, err := Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Dial(t.Context(), "tcp", "192.0.2.1:443")
	if err == nil {
		c.Close()
	}
	return err
}

func TestRefused(t *testing.T) {
	socks := "\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb"
	for _, test := range []struct {
		scheme, want string
		dialog       []string
	}{
		{"socks5", "unexpected protocol version 72", []string{"\x05\x01\x00", "HT"}},
		{"socks5", "no acceptable authentication methods", []string{"\x05\x01\x00", "\x05\xff"}},
		{"socks5", "connection refused", []string{"\x05\x01\x00", socksOK, socks, "\x05\x05\x00\x01\x00\x00"}},
		{"socks5", "unknown code: 200", []string{"\x05\x01\x00", socksOK, socks, "\x05\xc8\x00\x01\x00\x00"}},
		{"socks5", "unknown address type 7", []string{"\x05\x01\x00", socksOK, socks, "\x05\x00\x00\x07\x00\x00"}},
		{"http", "status 407 Proxy Authentication Required", []string{httpHead + "\r\n", "HTTP/1.1 407 \x1b[2J\r\n\r\n"}},
		{"http", "no HTTP", []string{httpHead + "\r\n", "SSH-2.0\r\n\r\n"}},
		{"http", "too long", []string{httpHead + "\r\n", "HTTP/1.1 200 OK\r\nx: " + strings.Repeat("x", maxAnswer)}},
	} {
		err := fails(t, test.scheme+"://"+serve(t, test.dialog...))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
	if err := fails(t, "socks5://me:secret@"+serve(t, "\x05\x02\x00\x02", "\x05\x02", "\x01\x02me\x06secret", "\x01\x01")); err == nil ||
		strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "username/password authentication failed") {
		t.Errorf("%v; want a refusal without the password", err)
	}
}

// An answer that ends at any byte is an error.
func TestTruncated(t *testing.T) {
	socks := "\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb"
	for _, test := range []struct {
		scheme string
		run    func(n int) []string
		length int
	}{
		{"socks5", func(n int) []string { return []string{"\x05\x01\x00", socksOK[:n]} }, len(socksOK)},
		{"socks5", func(n int) []string { return []string{"\x05\x01\x00", socksOK, socks, socksDone[:n]} }, len(socksDone)},
		{"http", func(n int) []string { return []string{httpHead + "\r\n", "HTTP/1.1 200 OK\r\n\r\n"[:n]} }, 19},
	} {
		for n := range test.length {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				for i, part := range test.run(n) {
					if i%2 == 1 {
						io.WriteString(c, part)
					} else {
						io.ReadFull(c, make([]byte, len(part)))
					}
				}
			}()
			if err := fails(t, test.scheme+"://"+l.Addr().String()); err == nil {
				t.Errorf("%s: connected after %d bytes", test.scheme, n)
			}
			l.Close()
		}
	}
}

// The end of the context ends a dial that waits for its proxy.
func TestSilentProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := Parse("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := p.Dial(ctx, "tcp", "192.0.2.1:443"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"", "host:1080", "socks5://", "socks5://host", "https://host:1", "socks4://host:1", "http://host:1/path", "http://host:1?a=b",
		"socks5://:1080", "http://host:99999999", "socks5://" + string(bytes.Repeat([]byte("a"), 256)) + "@h:1", "http://se\x00cret@host:1"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%.40q is a proxy", bad)
		} else if strings.Contains(err.Error(), "cret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}
