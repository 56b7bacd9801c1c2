// Package proxy makes TCP connections through a proxy: SOCKS 5 (RFC 1928, RFC 1929) or HTTP
// CONNECT (RFC 9110, 9.3.6). What a proxy answers is bounded, and made printable in errors.
package proxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Proxy is where connections go through.
type Proxy struct {
	address  string // host:port
	user     *url.Userinfo
	connect  func(p *Proxy, c net.Conn, address netip.AddrPort) error
	shownURL string // without a password
}

// Parse returns the proxy that a URL names: socks5://[user:password@]host:port, or the same
// with http.
func Parse(rawURL string) (*Proxy, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("it is no URL") // the URL may have a password
	}
	p := &Proxy{address: u.Host, user: u.User, shownURL: u.Redacted()}
	switch u.Scheme {
	case "socks5":
		p.connect = (*Proxy).socks
	case "http":
		p.connect = (*Proxy).http
	default:
		return nil, errors.New("it must begin with socks5:// or http://")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	more := strings.Trim(u.Path, "/") + u.RawQuery + u.Fragment
	if u.Hostname() == "" || err != nil || port == 0 || more != "" {
		return nil, errors.New("it must name a host and a port, and no more")
	}
	if password, _ := p.user.Password(); len(p.user.Username()) > 255 || len(password) > 255 {
		return nil, errors.New("its user or password is too long")
	}
	return p, nil
}

// Dial connects to an address, of the form 192.0.2.1:443, through the proxy. It blocks until the
// proxy has connected or ctx ends.
func (p *Proxy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	c, err := new(net.Dialer).DialContext(ctx, network, p.address)
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", p.shownURL, err)
	}
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	err = p.connect(p, c, to)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("proxy %s: %w", p.shownURL, err)
	}
	return c, nil
}

// Values of RFC 1928 and RFC 1929.
const (
	socksVersion     = 5
	noAuthentication = 0
	byPassword       = 2
	passwordVersion  = 1
	connectCommand   = 1
	ipv4, name, ipv6 = 1, 3, 4
)

// replies are the errors of a SOCKS proxy, from 1 on.
var replies = []string{
	"it failed", "its rules forbid that", "network unreachable", "host unreachable", "connection refused",
	"the address was not reached in time", "it cannot connect by TCP", "it knows no such address",
}

func (p *Proxy) socks(c net.Conn, to netip.AddrPort) error {
	method := byte(noAuthentication)
	if p.user != nil {
		method = byPassword
	}
	answer, err := exchange(c, []byte{socksVersion, 1, method}, 2)
	switch {
	case err != nil:
		return err
	case answer[0] != socksVersion:
		return errors.New("it speaks no SOCKS 5")
	case answer[1] != method:
		return errors.New("it wants another authentication")
	}
	if p.user != nil {
		user, password := p.user.Username(), ""
		password, _ = p.user.Password()
		request := append([]byte{passwordVersion, byte(len(user))}, user...)
		request = append(append(request, byte(len(password))), password...)
		if answer, err = exchange(c, request, 2); err != nil {
			return err
		}
		if answer[1] != 0 {
			return errors.New("it refuses the user or the password")
		}
	}
	kind := byte(ipv6)
	if to.Addr().Unmap().Is4() {
		kind = ipv4
	}
	request := append([]byte{socksVersion, connectCommand, 0, kind}, to.Addr().Unmap().AsSlice()...)
	request = append(request, byte(to.Port()>>8), byte(to.Port()))
	if answer, err = exchange(c, request, 4); err != nil {
		return err
	}
	if n := int(answer[1]); n > 0 && n <= len(replies) {
		return errors.New(replies[n-1])
	} else if n > 0 {
		return fmt.Errorf("error %d", n)
	}
	var length int // of the address at which it has connected, and the port
	switch answer[3] {
	case ipv4:
		length = 4 + 2
	case ipv6:
		length = 16 + 2
	case name:
		if answer, err = exchange(c, nil, 1); err != nil {
			return err
		}
		length = int(answer[0]) + 2
	default:
		return errors.New("it answers with an unknown kind of address")
	}
	_, err = exchange(c, nil, length)
	return err
}

// exchange sends a request and reads an answer of n bytes.
func exchange(c net.Conn, request []byte, n int) ([]byte, error) {
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	answer := make([]byte, n)
	_, err := io.ReadFull(c, answer)
	return answer, err
}

// maxAnswer bounds the head of an HTTP answer in bytes.
const maxAnswer = 16 << 10

func (p *Proxy) http(c net.Conn, to netip.AddrPort) error {
	lines := fmt.Sprintf("CONNECT %v HTTP/1.1\r\nHost: %v\r\n", to, to)
	if p.user != nil {
		password, _ := p.user.Password()
		token := base64.StdEncoding.EncodeToString([]byte(p.user.Username() + ":" + password))
		lines += "Proxy-Authorization: Basic " + token + "\r\n"
	}
	if _, err := io.WriteString(c, lines+"\r\n"); err != nil {
		return err
	}
	// Byte by byte: what is behind the head belongs to the connection.
	var head []byte
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if len(head) == maxAnswer {
			return errors.New("its answer is too long")
		}
		b, err := exchange(c, nil, 1)
		if err != nil {
			return err
		}
		head = append(head, b...)
	}
	request := &http.Request{Method: http.MethodConnect}
	answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), request)
	if err != nil {
		return errors.New("it speaks no HTTP")
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("it answers with status %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	return nil
}
