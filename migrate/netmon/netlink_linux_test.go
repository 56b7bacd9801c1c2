//go:build !android

package netmon

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The request for the route to 192.0.2.1 through interface 3, on a little-endian
// machine.
func TestRouteRequest(t *testing.T) {
	const want = "2c000000" + "1a00" + "0100" + "00000000" + "00000000" + // length, RTM_GETROUTE, NLM_F_REQUEST
		"02200000" + "00000000" + "00200000" + // IPv4, 32 bits, match a route
		"0800" + "0100" + "c0000201" +
		"0800" + "0400" + "03000000"
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("big-endian")
	}
	got := hex.EncodeToString(routeRequest(netip.MustParseAddr("192.0.2.1"), 3, unix.RTM_F_FIB_MATCH))
	if got != want {
		t.Errorf("request\n%s, want\n%s", got, want)
	}
}

// No truncated message causes a panic.
func TestTruncatedMessages(t *testing.T) {
	b, err := syscall.NetlinkRIB(unix.RTM_GETROUTE, unix.AF_UNSPEC)
	if err != nil {
		t.Skipf("the kernel does not list routes: %v", err)
	}
	for n := range min(len(b), 2000) {
		parseRoute(b[:n])
		// The same with the right length in the header.
		if n >= unix.SizeofNlMsghdr {
			short := append([]byte(nil), b[:n]...)
			binary.NativeEndian.PutUint32(short, uint32(n))
			parseRoute(short)
		}
	}
}
