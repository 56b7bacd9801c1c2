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

// A request for the route to 192.0.2.1 through interface 3, on a little-endian
// machine.
func TestRouteRequest(t *testing.T) {
	const want = "2c000000" + "1a00" + "0100" + "00000000" + "00000000" + // length, kind, request
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

// Messages that are cut anywhere are no reason to panic, and those that are not
// understood are taken for changes.
func TestMessagesCut(t *testing.T) {
	for kind, name := range map[int]string{
		unix.RTM_GETLINK: "links", unix.RTM_GETADDR: "addresses", unix.RTM_GETROUTE: "routes",
	} {
		b, err := syscall.NetlinkRIB(kind, unix.AF_UNSPEC)
		if err != nil {
			t.Skipf("the kernel does not tell of %s: %v", name, err)
		}
		if !matters(b) {
			t.Errorf("%s do not matter", name)
		}
		for n := range min(len(b), 2000) {
			_, errAddresses := addressesIn(b[:n])
			_, errRoute := routeAnswer(b[:n])
			if !matters(b[:n]) && n >= unix.SizeofNlMsghdr {
				t.Errorf("%d bytes of %s do not matter: %v, %v", n, name, errAddresses, errRoute)
			}
			// The same with a length in the header that fits.
			if n >= unix.SizeofNlMsghdr {
				short := append([]byte(nil), b[:n]...)
				binary.NativeEndian.PutUint32(short, uint32(n))
				matters(short)
				addressesIn(short)
				routeAnswer(short)
			}
		}
	}
}
