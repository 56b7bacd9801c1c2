//go:build linux || darwin

package push

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
)

const httpsPort = "443"

// special are addresses beside those that [netip.Addr] knows which are of no server in the Internet, or lead to one of the
// network around this machine: RFC 6890, and translations between the versions of IP.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"),
}

// internet has the addresses of IPv6 that are given to servers.
var internet = netip.MustParsePrefix("2000::/3")

// NewClient returns a client that reaches servers in the Internet by HTTPS alone, whatever a name leads to, and follows
// no redirect.
func NewClient() *http.Client {
	dialer := &net.Dialer{Timeout: sendTime, Control: checkAddress}
	return &http.Client{
		Timeout:       sendTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: 16 << 10,
		},
	}
}

// checkAddress refuses an address before it is connected to.
func checkAddress(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	addr := to.Addr().Unmap()
	if fmt.Sprint(to.Port()) != httpsPort || !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.Is6() && !internet.Contains(addr) ||
		slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return fmt.Errorf("%s is no push service", address)
	}
	return nil
}
