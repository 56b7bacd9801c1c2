//go:build linux || darwin

package sshd

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// matchHost matches a client's name or address against the patterns behind an @ (PATTERNS in
// ssh_config(5)): names, addresses and address/length, separated by commas, with ! before
// those that must not match.
func matchHost(patterns, host string, client netip.Addr) (bool, error) {
	byAddress, err := matchAddresses(patterns, client)
	if err != nil {
		return false, err
	}
	byName := auth.MatchList(strings.ToLower(patterns), strings.ToLower(host))
	return byAddress >= 0 && byName >= 0 && byAddress+byName > 0, nil
}

// namesHost reports whether a pattern of AllowUsers or DenyUsers is for a user and names of
// hosts, and not for addresses alone.
func namesHost(pattern, user string) bool {
	name, hosts, _ := strings.Cut(pattern, "@")
	return auth.MatchPattern(name, user) && slices.ContainsFunc(strings.Split(hosts, ","), func(host string) bool {
		return !strings.Contains(host, ":") && strings.ContainsFunc(host, unicode.IsLetter)
	})
}

// matchAddresses returns 1 if an address matches a list of patterns, -1 if it matches one
// with an !, else 0.
func matchAddresses(patterns string, client netip.Addr) (int, error) {
	matched := 0
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		matches, err := matchAddress(pattern, client)
		if err != nil {
			return 0, err
		}
		if matches && negated {
			return -1, nil
		}
		if matches {
			matched = 1
		}
	}
	return matched, nil
}

// matchAddress matches an address against a pattern. One that is neither an address nor
// address/length matches as text. A network whose address has bits beyond the length is an
// error.
func matchAddress(pattern string, client netip.Addr) (bool, error) {
	text, length, isNetwork := strings.Cut(pattern, "/")
	addr, err := netip.ParseAddr(text)
	if err != nil {
		if pattern == "" {
			return false, fmt.Errorf("an empty pattern")
		}
		return auth.MatchPattern(pattern, client.String()), nil
	}
	if !isNetwork {
		return addr == client, nil
	}
	bits, err := strconv.Atoi(length)
	if err != nil {
		return false, nil
	}
	network, err := addr.Prefix(bits)
	if err != nil || network.Addr() != addr {
		return false, fmt.Errorf("%q is not a network", pattern)
	}
	return network.Contains(client), nil
}
