package reach

import (
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestNameServers(t *testing.T) {
	const file = "# nameserver 1.1.1.1\nsearch lan\nnameserver 8.8.8.8\n\nnameserver\n nameserver 2001:db8::1 # second\n"
	if got, want := nameServers(strings.NewReader(file)), []string{"8.8.8.8:53", "[2001:db8::1]:53"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A resolver with servers of its own asks one after the other.
func TestResolverWith(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if err := m.Unpack(b[:n]); err != nil {
				t.Error(err)
				return
			}
			m.Response = true
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
					Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}},
				}}
			}
			m.Additionals = nil
			answer, err := m.Pack()
			if err != nil {
				t.Error(err)
				return
			}
			server.WriteTo(answer, from)
		}
	}()
	addr := server.LocalAddr().String()
	addrs, err := resolverWith([]string{addr}).LookupNetIP(t.Context(), "ip4", "host.example.")
	if err != nil || len(addrs) != 1 || addrs[0].String() != "192.0.2.1" {
		t.Fatalf("got %v, %v", addrs, err)
	}
	r := resolverWith([]string{addr, "127.0.0.1:53"})
	for _, want := range []string{addr, "127.0.0.1:53", addr} {
		c, err := r.Dial(t.Context(), "udp", "127.0.0.9:53")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := c.RemoteAddr().String(); got != want {
			t.Errorf("asks %s, want %s", got, want)
		}
	}
}
