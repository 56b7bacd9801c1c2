package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// MatchPattern matches a string against a pattern of ssh (PATTERNS in ssh_config(5)): * matches
// any bytes, ? one byte.
func MatchPattern(pattern, s string) bool {
	p, i := 0, 0
	star, from := -1, 0 // the last *, and the end of the bytes that it matches
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0: // it matches one byte more
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// MatchList returns 1 if a text matches a list of patterns, which commas separate, -1 if it
// matches one with an !, else 0.
func MatchList(patterns, text string) int {
	matched, _ := matchList(patterns, func(pattern string) (bool, error) { return MatchPattern(pattern, text), nil })
	return matched
}

// MatchAddresses is MatchList for an address, which also matches itself in each spelling and networks that it is in. As
// for sshd, an empty pattern and a malformed network are errors.
func MatchAddresses(patterns string, addr netip.Addr) (int, error) {
	addr = addr.Unmap().WithZone("")
	return matchList(patterns, func(pattern string) (bool, error) {
		network, err := ParseNetwork(pattern)
		return network.Contains(addr) || !network.IsValid() && MatchPattern(pattern, addr.String()), err
	})
}

func matchList(patterns string, match func(pattern string) (bool, error)) (matched int, err error) {
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		switch matches, err := match(pattern); {
		case err != nil:
			return 0, err
		case matches && negated:
			return -1, nil
		case matches:
			matched = 1
		}
	}
	return matched, nil
}

// ParseNetwork returns the network that is an address, or address/length. It is not valid for another text. A network
// whose address has bits beyond the length is an error: 10.1.2.3/8 may mean one host or all of 10.0.0.0/8.
func ParseNetwork(text string) (netip.Prefix, error) {
	address, _, isNetwork := strings.Cut(text, "/")
	addr, err := netip.ParseAddr(address)
	switch {
	case text == "":
		return netip.Prefix{}, errors.New("an empty pattern")
	case err != nil:
		return netip.Prefix{}, nil
	case !isNetwork:
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil || network != network.Masked() {
		return netip.Prefix{}, fmt.Errorf("%q is not a network", text)
	}
	return network, nil
}
