// Package quota shares what is scarce fairly between those who ask for it, of whom any number may be hostile:
//
//	Rates   how often something happens, for each key
//	Places  how many wait at a time; when there are too many, who goes
//	Turns   how much is done at a time, and what comes next
//	Shares  how much of the memory each has, and who gives it back
//	Recent  what is remembered of keys, within a bound
//
// It has no clock, no goroutine and no socket: the caller passes the time. What is kept for keys is bounded, and a key
// that is forgotten is as one that was never seen. Rates, Turns and Shares are safe for concurrent use, Places and
// Recent are not.
package quota

import "net/netip"

// Source returns the source that a client's address belongs to: an IPv4 address, or
// an IPv6 /64, the least that a network is assigned (RFC 6177).
func Source(client netip.Addr) netip.Prefix { return prefix(client, 64) }

// Site returns the site that a client's address belongs to: an IPv4 address, or an IPv6
// /48, the most that a site is usually assigned (RFC 6177).
func Site(client netip.Addr) netip.Prefix { return prefix(client, 48) }

func prefix(client netip.Addr, bits int) netip.Prefix {
	ip := client.Unmap().WithZone("")
	if ip.Is4() {
		bits = 32
	}
	prefix, _ := ip.Prefix(bits)
	return prefix
}
