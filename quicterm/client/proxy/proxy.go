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
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/proxy"
)

// A Proxy is where connections go through.
type Proxy struct {
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	shownURL string // without a password
}

// Parse returns the proxy that a URL names: socks5://[user:password@]host:port, or the same
// with http.
func Parse(rawURL string) (*Proxy, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("it is no URL") // the URL may have a password
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	more := strings.Trim(u.Path, "/") + u.RawQuery + u.Fragment
	password, _ := u.User.Password()
	p := &Proxy{shownURL: u.Redacted()}
	switch {
	case u.Scheme != "socks5" && u.Scheme != "http":
		return nil, errors.New("it must begin with socks5:// or http://")
	case u.Hostname() == "" || err != nil || port == 0 || more != "":
		return nil, errors.New("it must name a host and a port, and no more")
	case len(u.User.Username()) > 255 || len(password) > 255:
		return nil, errors.New("its user or password is too long")
	case u.Scheme == "http":
		p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return throughHTTP(ctx, network, u, address)
		}
		return p, nil
	}
	var auth *proxy.Auth
	if u.User != nil {
		auth = &proxy.Auth{User: u.User.Username(), Password: password}
	}
	socks, err := proxy.SOCKS5("tcp", u.Host, auth, proxy.Direct)
	if err != nil {
		return nil, err
	}
	p.dial = socks.(proxy.ContextDialer).DialContext
	return p, nil
}

// Dial connects to an address, of the form 192.0.2.1:443, through the proxy. It blocks until the
// proxy has connected or ctx ends.
func (p *Proxy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := p.dial(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", p.shownURL, err)
	}
	return c, nil
}

// maxAnswer bounds the head of an HTTP answer in bytes.
const maxAnswer = 16 << 10

// throughHTTP connects to an address through the proxy that a URL names.
func throughHTTP(ctx context.Context, network string, u *url.URL, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, u.Host)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	err = connect(c, u.User, address)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// connect asks an HTTP proxy for a connection to an address.
func connect(c net.Conn, user *url.Userinfo, address string) error {
	lines := fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n", address, address)
	if user != nil {
		password, _ := user.Password()
		token := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
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
		b := make([]byte, 1)
		if _, err := io.ReadFull(c, b); err != nil {
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
